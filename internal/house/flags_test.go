package house

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// defined finds the flags that a file defines.
var defined = regexp.MustCompile(`\bflag\.\w+\("([^"]+)", .*\)`)

// The tests of several folders may be linked into one program, depending on what is tested. If a program defines a flag
// twice, it ends before its first test. So each folder's flags need other names.
func TestFlagsOfLinkedTestsHaveNamesOfTheirOwn(t *testing.T) {
	inRoot(t)
	where := make(map[string]string)
	err := filepath.WalkDir("test/integration", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.PackageClauseOnly)
		if err != nil || f.Name.Name == "main" {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for _, m := range defined.FindAllSubmatch(text, -1) {
			if other, ok := where[string(m[1])]; ok {
				t.Errorf("%s defines the flag %s, as %s does", name, m[1], other)
			}
			where[string(m[1])] = name
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(where) < 10 {
		t.Errorf("%d flags were found; does the test still look where they are?", len(where))
	}
}
