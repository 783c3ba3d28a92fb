package sqlfence

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// Other people's types are read in one room: in all modules, no other product file imports
// reflect or unsafe. conformance is for tests, and shows what drivers return.
func TestReflectionHasOneRoom(t *testing.T) {
	rooms := map[string]bool{"internal/basedriver": true, "conformance": true, "bench": true, "internal/memdb": true}
	inside := 0
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && name != "."):
			return filepath.SkipDir
		case d.IsDir(), !strings.HasSuffix(name, ".go"), strings.HasSuffix(name, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil || ast.IsGenerated(f) {
			return err
		}
		for _, spec := range f.Imports {
			if path := spec.Path.Value; path != `"reflect"` && path != `"unsafe"` {
				continue
			}
			if rooms[filepath.ToSlash(filepath.Dir(name))] {
				inside++
			} else {
				t.Errorf("%s imports %s: package basedriver is the room for it", name, spec.Path.Value)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if inside == 0 {
		t.Error("no file was found to import them")
	}
}
