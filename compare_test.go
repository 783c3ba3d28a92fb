package sqlfence

import (
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// comparesErrors are the functions that may compare errors with == or !=: one side is
// always a sentinel that holds a pointer, so that the comparison can't panic.
var comparesErrors = []string{"isSkip", "isEnd", "Is"}

// Errors of drivers may be of a type that can't be compared, and == between two of
// them panics. So errors are compared with nil alone.
func TestErrorsAreNotCompared(t *testing.T) {
	files, list := parsePackage(t)
	info := &types.Info{Types: make(map[ast.Expr]types.TypeAndValue)}
	// With cgo the importer of net leaves files in the temporary folder.
	defer func(enabled bool) { build.Default.CgoEnabled = enabled }(build.Default.CgoEnabled)
	build.Default.CgoEnabled = false
	// What doesn't type-check, such as an interface of a newer Go, isn't looked at.
	conf := types.Config{Importer: importer.ForCompiler(files, "source", nil), Error: func(error) {}}
	_, _ = conf.Check("github.com/sqlfence/sqlfence", files, list, info)
	withNil := 0
	for _, f := range list {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && !slices.Contains(comparesErrors, fn.Name.Name) {
				withNil += checkComparisons(t, files, info, fn)
			}
		}
	}
	if withNil < 50 {
		t.Errorf("only %d comparisons of an error with nil were found: the types aren't known", withNil)
	}
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

// parsePackage parses this package without its tests.
func parsePackage(t *testing.T) (files *token.FileSet, list []*ast.File) {
	files = token.NewFileSet()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") || name == "rows_pre_go1.27.go" { // whose counterpart is checked
			continue
		}
		f, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, f)
	}
	return files, list
}
