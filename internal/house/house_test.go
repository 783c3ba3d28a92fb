package house

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// These tests keep the structure of the repository, which later changes could break unnoticed. docs/architecture.md
// explains it.

// layers are the packages of the root module. A package imports only packages of earlier lines.
var layers = [][]string{
	{"schema/issuers", "schema/mysql", "schema/postgres", "schema/sqlite"},
	{"internal/test/fakedb", "internal/test/golden", "internal/test/need", "internal/test/random"},
	{"internal/basedriver", "internal/editlock", "internal/fact", "internal/fault", "internal/hedge", "internal/lost",
		"internal/nfc", "internal/nonce", "internal/poll", "internal/share", "internal/trusted"},
	{"internal/dberr"},
	{"internal/cleanup"},
	{"internal/sqltext", "internal/stop"},
	{"internal/seal", "internal/setuperr", "internal/sql/lex"},
	{"internal/session"},
	{"internal/guard"},
	{"internal/dialect/mysql", "internal/dialect/postgres", "internal/dialect/sqlite"},
	{"internal/dialect", "internal/dialect/mysql/sealsql", "internal/dialect/postgres/sealsql"},
	{"internal/similar", "internal/sql/lang"},
	{"rewrite/internal/advise"},
	{"rewrite/internal/read"},
	{"rewrite/internal/render"},
	{"rewrite/internal/rules"},
	{"rewrite"},
	{"internal/core"},
	{"internal/fenced"},
	{".", "internal/catalogue"},
	{"internal/dialectopt", "internal/refusal", "coverage", "verify"},
	{"rowlock", "schema", "changes"},
	{"tokens"},
	{"lease"},
}

const module = "github.com/sqlfence/sqlfence"

// A package imports only packages of earlier layers, and only tests import packages in internal/test.
func TestImportsPointOneWay(t *testing.T) {
	inRoot(t)
	below := make(map[string]int)
	for i, layer := range layers {
		for _, p := range layer {
			below[p] = i
		}
	}
	seen := make(map[string]bool)
	eachProductFile(t, func(name string, f *ast.File) {
		folder := path.Dir(name)
		own, known := below[folder]
		if !known {
			t.Errorf("%s is in no layer", folder)
			return
		}
		seen[folder] = true
		for _, spec := range f.Imports {
			to, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module)
			if !ours {
				continue
			}
			to = path.Join(".", to)
			if strings.HasPrefix(to, "internal/test/") {
				t.Errorf("%s imports %s, which is for tests", name, to)
			}
			if layer, known := below[to]; !known || layer >= own {
				t.Errorf("%s imports %s, which isn't below it", name, to)
			}
		}
	})
	for folder := range below {
		if !seen[folder] {
			t.Errorf("there is no package %s", folder)
		}
	}
}

// The root is small enough to be read, and a statement's execution to be held in one head.
func TestTheRootStaysSmall(t *testing.T) {
	inRoot(t)
	const mostFiles, mostFields = 28, 9
	files, fields := 0, 0
	eachProductFile(t, func(name string, f *ast.File) {
		switch path.Dir(name) {
		case ".":
			files++
			return
		case "internal/core":
		default:
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok && spec.Name.Name == "Execution" {
				for _, field := range spec.Type.(*ast.StructType).Fields.List {
					fields += max(1, len(field.Names))
				}
			}
			return true
		})
	})
	if files == 0 || files > mostFiles {
		t.Errorf("the root has %d files, want at most %d", files, mostFiles)
	}
	if fields == 0 || fields > mostFields {
		t.Errorf("an execution has %d fields, want at most %d", fields, mostFields)
	}
}

// The core's own queries are sent only by internal/session and by server.go, and guarded statements only by enforce.go.
func TestQuestionsHaveOneDoor(t *testing.T) {
	inRoot(t)
	doors := map[string][]string{
		"adapter.Query": {"internal/core/server.go"},
		"adapter.Exec":  {"internal/core/server.go"},
		"findLedger":    {"internal/session/searchpath.go"},
		"attempt":       {"internal/core/enforce.go"},
	}
	used := make(map[string]bool)
	eachProductFile(t, func(name string, f *ast.File) {
		if folder := path.Dir(name); folder != "internal/core" && folder != "internal/session" {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			called := ""
			switch fun := call.Fun.(type) {
			case *ast.Ident:
				called = fun.Name
			case *ast.SelectorExpr:
				called = fun.Sel.Name
				if of, ok := fun.X.(*ast.SelectorExpr); ok && of.Sel.Name == "adapter" {
					called = "adapter." + called
				}
			}
			if files, ok := doors[called]; ok {
				used[called] = true
				if !slices.Contains(files, name) {
					t.Errorf("%s calls %s, which is for %v", name, called, files)
				}
			}
			return true
		})
	})
	for called := range doors {
		if !used[called] {
			t.Errorf("%s isn't called", called)
		}
	}
}

// The core knows no driver of database/sql: its adapters do.
func TestTheCoreKnowsNoDriver(t *testing.T) {
	inRoot(t)
	adapters := []string{"Conn", "Driver", "Connector", "Stmt", "Rows", "Result", "Tx"}
	files := 0
	eachProductFile(t, func(name string, f *ast.File) {
		if path.Dir(name) != "internal/core" {
			return
		}
		files++
		ast.Inspect(f, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if of, ok := sel.X.(*ast.Ident); ok && of.Name == "driver" && slices.Contains(adapters, sel.Sel.Name) {
					t.Errorf("%s names driver.%s", name, sel.Sel.Name)
				}
			}
			return true
		})
	})
	if files == 0 {
		t.Error("there is no core")
	}
}

// Lines are read, so they end at column 120, tabs being four columns wide. The few that don't are in
// functions and triggers that a database stores, and in statements: their texts are compared byte for
// byte, and a break in the middle of a clause would be read worse than a long line.
func TestLinesStayShort(t *testing.T) {
	inRoot(t)
	const widest, most = 120, 85
	var long []string
	for _, root := range []string{".", "cmd/sqlfence"} {
		eachProductFileOf(t, root, func(name string) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for i, line := range strings.Split(string(text), "\n") {
				if width(line) > widest {
					long = append(long, fmt.Sprintf("%s:%d", name, i+1))
				}
			}
		})
	}
	if len(long) > most {
		t.Errorf("%d lines are longer than %d columns, want at most %d:\n%s",
			len(long), widest, most, strings.Join(long, "\n"))
	}
}

// width returns how many columns a line has.
func width(line string) (columns int) {
	for _, r := range line {
		if r == '\t' {
			columns += 4 - columns%4
		} else {
			columns++
		}
	}
	return columns
}

var updateNames = flag.Bool("update", false, "write the golden file of the public names")

// What each public package exports is in testdata/exports.golden, so that a new name is a decision.
func TestPublicNames(t *testing.T) {
	inRoot(t)
	names := make(map[string][]string)
	eachProductFile(t, func(name string, f *ast.File) {
		folder := path.Dir(name)
		if strings.Contains("/"+folder, "/internal/") {
			return
		}
		for _, decl := range f.Decls {
			names[folder] = append(names[folder], exported(decl)...)
		}
	})
	var b strings.Builder
	for _, folder := range slices.Sorted(maps.Keys(names)) {
		slices.Sort(names[folder])
		for _, name := range slices.Compact(names[folder]) {
			b.WriteString(folder + " " + name + "\n")
		}
	}
	const golden = "internal/house/testdata/exports.golden"
	if *updateNames {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("the public names have changed: look at them, and run go test -run TestPublicNames -update ./internal/house\n%s", b.String())
	}
}

// exported returns the exported names of a declaration. A method's name follows its type's.
func exported(decl ast.Decl) (names []string) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		name := d.Name.Name
		if d.Recv != nil {
			typ := d.Recv.List[0].Type
			if star, ok := typ.(*ast.StarExpr); ok {
				typ = star.X
			}
			of, ok := typ.(*ast.Ident)
			if !ok || !of.IsExported() {
				return nil
			}
			name = of.Name + "." + name
		}
		if d.Name.IsExported() {
			names = append(names, name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() {
					names = append(names, s.Name.Name)
				}
			case *ast.ValueSpec:
				for _, name := range s.Names {
					if name.IsExported() {
						names = append(names, name.Name)
					}
				}
			}
		}
	}
	return names
}

// parsedFiles holds the syntax tree of each product file, because several tests read all of them.
var parsedFiles = make(map[string]*ast.File)

// eachProductFile passes the syntax tree of each product file of the root module, and its slashed name, to do.
func eachProductFile(t *testing.T, do func(name string, f *ast.File)) {
	t.Helper()
	eachProductFileOf(t, ".", func(name string) {
		f := parsedFiles[name]
		if f == nil {
			var err error
			if f, err = parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments); err != nil {
				t.Fatal(err)
			}
			parsedFiles[name] = f
		}
		do(filepath.ToSlash(name), f)
	})
}

// eachProductFileOf visits the product files of the module in a folder.
func eachProductFileOf(t *testing.T, root string, do func(name string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			_, nested := os.Stat(filepath.Join(name, "go.mod"))
			if name != root && (nested == nil || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")) {
				return filepath.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			do(name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Only internal/basedriver inspects other packages' types: in all modules no other product file imports reflect or
// unsafe. conformance is for tests, and shows what drivers return.
func TestReflectionHasOneRoom(t *testing.T) {
	inRoot(t)
	rooms := map[string]bool{"internal/basedriver": true, "conformance": true, "test/bench": true}
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
