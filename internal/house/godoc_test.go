package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// go doc prints an exported declaration as it is written, and users can't look up a name of an internal package.
func TestGoDocOfTheRootShowsNoInternalName(t *testing.T) {
	inRoot(t)
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("found %d files: %v", len(files), err)
	}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		internal := make(map[string]bool)
		for _, spec := range f.Imports {
			if importPath := strings.Trim(spec.Path.Value, `"`); strings.HasPrefix(importPath, module+"/internal/") {
				internal[path.Base(importPath)] = true
			}
		}
		ast.FileExports(f)
		for _, decl := range f.Decls {
			if len(exported(decl)) == 0 { // a method of a type that isn't exported
				continue
			}
			ast.Inspect(decl, func(n ast.Node) bool {
				if selector, ok := n.(*ast.SelectorExpr); ok {
					if of, ok := selector.X.(*ast.Ident); ok && internal[of.Name] {
						t.Errorf("%s: an exported declaration names %s.%s; add a name of the root to names.go", name,
							of.Name, selector.Sel.Name)
					}
				}
				_, isBody := n.(*ast.BlockStmt)
				return !isBody
			})
		}
	}
}
