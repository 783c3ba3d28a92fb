package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// dialectFolder has a folder for each database with what differs among databases. A package that needs more of a
// database than texts and facts has files named after the database.
const dialectFolder = "internal/dialect"

var dialectFiles = []string{"dialect.go", "database.go", "postgres.go", "sqlite.go", "mysql.go"}

// isDialectFile reports whether a file may depend on a dialect's name.
func isDialectFile(name string) bool {
	return strings.HasPrefix(filepath.ToSlash(name), dialectFolder+"/") || slices.Contains(dialectFiles, filepath.Base(name))
}

// importsDialect reports whether a file imports a database's folder although the file isn't named after the database.
func importsDialect(name string, f *ast.File) bool {
	for _, spec := range f.Imports {
		folder, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module+"/"+dialectFolder+"/")
		folder, _, _ = strings.Cut(folder, "/")
		if ours && !isDialectFile(name) && !strings.Contains(filepath.Base(name), folder) {
			return true
		}
	}
	return false
}

// A function that names a dialect would leave out the next that is added. So would a
// comparison with a name, and a map with some of the dialects. That is for all modules
// of the repository, but not for tests.
func TestDialectsAreNamedInTheirFilesOnly(t *testing.T) {
	inRoot(t)
	looked := 0
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && name != "."):
			return filepath.SkipDir
		case d.IsDir(), !strings.HasSuffix(name, ".go"), strings.HasSuffix(name, "_test.go"), isDialectFile(name):
			return nil
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if ast.IsGenerated(f) {
			return nil
		}
		looked++
		if importsDialect(name, f) {
			t.Errorf("%s imports the folder of one database", name)
		}
		for _, found := range namedDialects(f) {
			t.Errorf("%v: depends on a dialect by name; make it a part of the dialect's value", files.Position(found))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if looked < 100 {
		t.Errorf("only %d files were looked at", looked)
	}
}

// The test above has to find each way to depend on a dialect's name.
func TestNamedDialectsAreFound(t *testing.T) {
	inRoot(t)
	for body, want := range map[string]int{
		"func f() { if d == sqlfence.Postgres {} }":                           1,
		"func f() { if d != SQLite {} }":                                      1,
		"func f() { switch d { case Postgres, SQLite: } }":                    2,
		"func f() { switch d.(type) { case postgres: } }":                     1,
		"func f() { _, ok := d.(sqlite) }":                                    1,
		"func f() { if d.String() == \"PostgreSQL\" {} }":                     1,
		"func f() { switch name { case \"sqlite3\": } }":                      1,
		"var m = map[sqlfence.Dialect]string{}":                               1,
		"func f() { m := map[Dialect]bool{x: true} }":                         1,
		"var only = d == SQLite":                                              1,
		"import \"example.com/sqlite\"\nfunc f() { sqlite.Open(\"sqlite\") }": 0,
		"var Postgres = dialect{}":                                            0,
		"func f() { if d != e.dialect() {} }":                                 0,
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "", "package p\n"+body, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(namedDialects(f)); got != want {
			t.Errorf("%s: found %d, want %d", body, got, want)
		}
	}
}

// namedDialects returns where a file's code depends on a dialect's name.
func namedDialects(f *ast.File) (found []token.Pos) {
	imported := make(map[string]bool)
	for _, spec := range f.Imports {
		if name, err := strconv.Unquote(spec.Path.Value); err == nil {
			imported[path.Base(name)] = true
		}
	}
	note := func(exprs ...ast.Expr) {
		for _, e := range exprs {
			if isDialect(e, imported) {
				if sel, ok := e.(*ast.SelectorExpr); ok {
					e = sel.Sel
				}
				found = append(found, e.Pos())
			}
		}
	}
	for _, decl := range f.Decls {
		fn, isFunc := decl.(*ast.FuncDecl)
		ast.Inspect(decl, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				if n.Op == token.EQL || n.Op == token.NEQ {
					note(n.X, n.Y)
				}
			case *ast.CaseClause:
				note(n.List...)
			case *ast.TypeAssertExpr:
				note(n.Type)
			case *ast.MapType:
				if strings.HasSuffix(nameOf(n.Key), "Dialect") {
					found = append(found, n.Pos())
				}
			case *ast.Ident:
				if isFunc && fn.Body != nil && n.Pos() > fn.Body.Pos() && !imported[n.Name] {
					note(n)
				}
			}
			return true
		})
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// isDialect reports whether an expression is a dialect by name: as a constant, a type, or
// a text.
func isDialect(e ast.Expr, imported map[string]bool) bool {
	name := nameOf(e)
	if lit, ok := e.(*ast.BasicLit); ok {
		name, _ = strconv.Unquote(lit.Value)
	} else if imported[name] {
		return false
	}
	return slices.Contains([]string{"postgres", "postgresql", "sqlite", "sqlite3", "mysql"}, strings.ToLower(name))
}

// nameOf returns the last part of a name, and "" for other expressions.
func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.StarExpr:
		return nameOf(e.X)
	}
	return ""
}
