package house

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// comparesErrors are the functions that may compare errors with == or !=. One side is always a sentinel with a pointer,
// so the comparison can't panic.
var comparesErrors = []string{"isSkip", "isEnd", "Is"}

// Drivers' errors may have a type that == can't compare: it panics. So errors are only compared with nil.
func TestErrorsAreNotCompared(t *testing.T) {
	inRoot(t)
	files, folders := token.NewFileSet(), []string{".", "internal/core"}
	// Code that doesn't type-check, such as an interface of a newer Go, isn't checked.
	conf := types.Config{Importer: compiledImporter(t, files, folders), Error: func(error) {}}
	withNil := 0
	for _, folder := range folders {
		info := &types.Info{Types: make(map[ast.Expr]types.TypeAndValue)}
		list := parsePackage(t, files, folder)
		_, _ = conf.Check(path.Join(module, folder), files, list, info)
		for _, f := range list {
			for _, d := range f.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && !slices.Contains(comparesErrors, fn.Name.Name) {
					withNil += checkComparisons(t, files, info, fn)
				}
			}
		}
	}
	if withNil < 50 {
		t.Errorf("only %d comparisons of an error with nil were found: the types aren't known", withNil)
	}
}

// compiledImporter returns an importer of the packages that those in the folders depend on. It reads the
// compiler's output in the build cache, because to type-check the sources of all of them takes seconds.
func compiledImporter(t *testing.T, files *token.FileSet, folders []string) types.Importer {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}"}
	for _, folder := range folders {
		args = append(args, "./"+folder)
	}
	list, err := exec.Command("go", args...).Output()
	if err != nil {
		t.Fatalf("go %q: %v", args, err)
	}
	compiled := make(map[string]string)
	for line := range strings.Lines(string(list)) {
		name, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		compiled[name] = file
	}
	return importer.ForCompiler(files, "gc", func(name string) (io.ReadCloser, error) { return os.Open(compiled[name]) })
}

// checkComparisons reports comparisons between errors, and returns how many there are
// with nil.
func checkComparisons(t *testing.T, files *token.FileSet, info *types.Info, fn *ast.FuncDecl) (withNil int) {
	isError := func(e ast.Expr) bool {
		known := info.Types[e]
		return known.Type != nil && types.Identical(known.Type, types.Universe.Lookup("error").Type())
	}
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			switch {
			case n.Op != token.EQL && n.Op != token.NEQ || !isError(n.X) && !isError(n.Y):
			case info.Types[n.X].IsNil() || info.Types[n.Y].IsNil():
				withNil++
			default:
				t.Errorf("%v: compares errors", files.Position(n.Pos()))
			}
		case *ast.SwitchStmt:
			if n.Tag != nil && isError(n.Tag) {
				t.Errorf("%v: switches over an error", files.Position(n.Pos()))
			}
		}
		return true
	})
	return withNil
}

// parsePackage parses the package in a folder without its tests.
func parsePackage(t *testing.T, files *token.FileSet, folder string) (list []*ast.File) {
	names, err := filepath.Glob(folder + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, f)
	}
	return list
}
