package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// locate returns where the module cache has a module, at the version that this
// module requires.
func locate(module string) (dir, version string, err error) {
	out, err := exec.Command("go", "mod", "download", "-json", module).Output()
	if err != nil {
		return "", "", fmt.Errorf("go mod download: %w", err)
	}
	var m struct{ Dir, Version string }
	err = json.Unmarshal(out, &m)
	return m.Dir, m.Version, err
}

// copyTree copies files from the module cache, where they are read-only.
func copyTree(to, from string) error {
	return filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		if d.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		mode := os.FileMode(0o644)
		if strings.HasSuffix(path, ".key") { // a secret that others can read is refused
			mode = 0o600
		}
		return os.WriteFile(target, data, mode)
	})
}

// wrap makes the copied module open databases through sqlfence.
func wrap(dir, root string, s suite) error {
	if s.wrap != nil {
		if err := s.wrap(dir, s); err != nil {
			return err
		}
	}
	for _, folder := range s.rewritten {
		if err := wrapFolder(filepath.Join(dir, folder), s.dialect); err != nil {
			return err
		}
	}
	const path = "github.com/sqlfence/sqlfence"
	edit := exec.Command("go", "mod", "edit", "-require="+path+"@v0.0.0", "-replace="+path+"="+root,
		"-require="+path+"/fencepgx@v0.0.0", "-replace="+path+"/fencepgx="+filepath.Join(root, "fencepgx"))
	edit.Dir = dir
	if out, err := edit.CombinedOutput(); err != nil {
		return fmt.Errorf("go mod edit: %w\n%s", err, out)
	}
	return nil
}

// wrapFolder changes the calls in each package of a folder, and adds to it what
// they call instead.
func wrapFolder(dir, dialect string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return err
	}
	helpers := make(map[string]string) // by package, the file's name
	for _, file := range files {
		pkg, changed, err := wrapFile(file)
		if err != nil {
			return err
		}
		isTest := strings.HasSuffix(file, "_test.go")
		switch {
		case !changed:
		case !isTest:
			helpers[pkg] = "sqlfence_open.go" // tests of the package find it too
		case helpers[pkg] == "":
			helpers[pkg] = "sqlfence_open_" + pkg + "_x_test.go"
		}
	}
	for pkg, name := range helpers {
		text := fmt.Sprintf(helper, pkg, dialect)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// The dialect is given, because some tests open connectors of their own.
const helper = `package %s

import (
	"database/sql"
	"database/sql/driver"

	"github.com/sqlfence/sqlfence"
)

func sqlfenceOpen(name, dsn string) (*sql.DB, error) {
	return sqlfence.Open(name, dsn, sqlfence.WithDialect(sqlfence.%[2]s))
}

func sqlfenceOpenDB(c driver.Connector) *sql.DB {
	db, err := sqlfence.OpenDB(c, sqlfence.WithDialect(sqlfence.%[2]s))
	if err != nil {
		panic(err)
	}
	return db
}

// sqlfenceRaw gives f the driver's connection, as an application has to get it.
func sqlfenceRaw(c *sql.Conn, f func(any) error) error {
	return c.Raw(func(dc any) error { return f(dc.(interface{ Raw() driver.Conn }).Raw()) })
}
`

// wrapFile changes the calls of sql.Open, sql.OpenDB and Conn.Raw in a file.
func wrapFile(file string) (pkg string, changed bool, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", false, err
	}
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, text, parser.SkipObjectResolution)
	if err != nil {
		return "", false, err
	}
	pkg = tree.Name.Name
	name := sqlName(tree)
	if name == "" {
		return pkg, false, nil
	}
	type edit struct {
		from, to int
		text     string
	}
	var edits []edit
	at := func(p token.Pos) int { return set.Position(p).Offset }
	ast.Inspect(tree, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && isRaw(call) {
			x := call.Fun.(*ast.SelectorExpr).X
			edits = append(edits,
				edit{at(x.Pos()), at(x.Pos()), "sqlfenceRaw("},
				edit{at(x.End()), at(call.Lparen) + 1, ", "})
		}
		if sel, ok := n.(*ast.SelectorExpr); ok && (sel.Sel.Name == "Open" || sel.Sel.Name == "OpenDB") {
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == name {
				edits = append(edits, edit{at(x.Pos()), at(sel.Sel.Pos()), "sqlfence"})
			}
		}
		return true
	})
	if len(edits) == 0 {
		return pkg, false, nil
	}
	slices.SortStableFunc(edits, func(a, b edit) int { return a.from - b.from })
	var b bytes.Buffer
	done := 0
	for _, e := range edits {
		b.Write(text[done:e.from])
		b.WriteString(e.text)
		done = e.to
	}
	b.Write(text[done:])
	fmt.Fprintf(&b, "\nvar _ *%s.DB // the import is used\n", name)
	return pkg, true, os.WriteFile(file, b.Bytes(), 0o644)
}

// isRaw reports whether a call looks like a call of sql.Conn's Raw.
func isRaw(call *ast.CallExpr) bool {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != "Raw" || len(call.Args) != 1 {
		return false
	}
	_, ok = call.Args[0].(*ast.FuncLit)
	return ok
}

// sqlName returns a file's import name of database/sql, or "".
func sqlName(tree *ast.File) string {
	for _, i := range tree.Imports {
		if path, err := strconv.Unquote(i.Path.Value); err != nil || path != "database/sql" {
			continue
		}
		if i.Name != nil {
			return i.Name.Name
		}
		return "sql"
	}
	return ""
}
