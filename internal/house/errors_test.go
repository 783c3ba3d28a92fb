package house

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var updateErrors = flag.Bool("update-errors", false, "write testdata/errors.txt")

// TestErrorTexts compares the texts of errors, findings and log records with testdata/errors.txt. A reader of this file
// can judge whether each text says what happened, what the failure means, and what to do. Package rewrite's texts are
// in a golden file of that package. An ellipsis replaces a value that isn't a constant.
func TestErrorTexts(t *testing.T) {
	inRoot(t)
	var out bytes.Buffer
	n := 0
	for _, dir := range []string{".", "internal/core", "tokens", "lease", "rowlock", "schema", "changes", "coverage", "verify",
		"internal/catalogue", "internal/session", "internal/setuperr", "internal/basedriver", "internal/dialectopt",
		"internal/lost", "fencepgx", "cmd/sqlfence"} {
		found := errorTexts(t, dir)
		n += len(found)
		if len(found) > 0 {
			fmt.Fprintf(&out, "## %s\n\n%s\n\n", strings.Replace(dir, ".", "package sqlfence", 1), strings.Join(found, "\n"))
		}
	}
	if n < 300 {
		t.Errorf("%d texts were found; does the test still look where they are?", n)
	}
	const file = "internal/house/testdata/errors.txt"
	if *updateErrors {
		if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(out.Bytes(), want) {
		t.Errorf("the texts of errors have changed (%v): run go test ./internal/house -run TestErrorTexts -update-errors, "+
			"and read the difference", err)
	}
}

// speaking has the functions and methods of other packages that take a text for a reader.
var speaking = []string{"Errorf", "New", "Log", "LogAttrs", "DebugContext", "InfoContext", "WarnContext", "ErrorContext",
	"Debug", "Info", "Warn", "Error", "Fprintln", "Fprintf", "Println", "Printf"}

// errorTexts returns the texts of a folder's Go files without tests, sorted. Each is an argument of one of the
// speaking functions, or of a function of the folder that takes a string and returns an error; or a field of an
// error or a finding; or a part of a method Error; or a constant or a variable.
func errorTexts(t *testing.T, dir string) []string {
	t.Helper()
	var files []*ast.File
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != dir && !strings.HasPrefix(dir, "cmd"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		files = append(files, f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	speakers := make(map[string]bool)
	for _, name := range speaking {
		speakers[name] = true
	}
	for _, f := range files {
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && makesError(d) {
				speakers[d.Name.Name] = true
			}
		}
	}
	texts := make(map[string]bool)
	for _, f := range files {
		for _, d := range f.Decls {
			collect(d, speakers, texts)
		}
	}
	return slices.Sorted(maps.Keys(texts))
}

// makesError reports whether a function takes a string and returns only an error.
func makesError(d *ast.FuncDecl) bool {
	if d.Type.Results == nil || len(d.Type.Results.List) != 1 || !isErrorType(d.Type.Results.List[0].Type) {
		return false
	}
	return slices.ContainsFunc(d.Type.Params.List, func(p *ast.Field) bool {
		name, ok := p.Type.(*ast.Ident)
		return ok && name.Name == "string"
	})
}

// isErrorType reports whether a type is an error, by its name.
func isErrorType(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.StarExpr:
		return isErrorType(e.X)
	case *ast.SelectorExpr:
		return isErrorType(e.Sel)
	case *ast.Ident:
		return regexp.MustCompile(`(?i)(error|fault|refusal|finding|missing)$`).MatchString(e.Name)
	}
	return false
}

// collect adds the texts of a declaration.
func collect(d ast.Node, speakers, texts map[string]bool) {
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Name.Name == "Error" && n.Recv != nil {
				add(n, texts)
			}
		case *ast.CallExpr:
			name := ""
			switch f := n.Fun.(type) {
			case *ast.Ident:
				name = f.Name
			case *ast.SelectorExpr:
				name = f.Sel.Name
			}
			if speakers[name] || name == "fault" || name == "defect" || name == "failIf" {
				for _, arg := range n.Args {
					add(arg, texts)
				}
			}
		case *ast.CompositeLit:
			if n.Type != nil && isErrorType(n.Type) {
				add(n, texts)
			}
		case *ast.ValueSpec: // a text that several errors share
			for _, v := range n.Values {
				if text, ok := textOf(v); ok && !strings.ContainsAny(text, "\n={") {
					add(v, texts)
				}
			}
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && slices.Contains([]string{"Reason", "Remedy", "reason", "remedy", "Text"}, key.Name) {
				add(n.Value, texts)
			}
		}
		return true
	})
}

// sql is how a statement begins, unlike a sentence.
var sql = regexp.MustCompile(`^\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP|WITH|SET|SHOW|PRAGMA|EXPLAIN|GRANT|BEGIN|LOCK|CALL|CASE|name >)\s`)

// add adds the texts of an expression that have at least three words.
func add(e ast.Node, texts map[string]bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		if _, ok := n.(*ast.FuncLit); ok {
			return false
		}
		x, ok := n.(ast.Expr)
		if !ok {
			return true
		}
		text, constant := textOf(x)
		if !constant {
			return true
		}
		if len(strings.Fields(text)) >= 3 && !sql.MatchString(text) {
			texts[strings.ReplaceAll(text, "\n", "⏎")] = true
		}
		return false
	})
}

// textOf returns the text of a literal, or of a sum with a literal.
func textOf(e ast.Expr) (text string, ok bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return "", false
		}
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.ParenExpr:
		return textOf(e.X)
	case *ast.BinaryExpr:
		if e.Op != token.ADD {
			return "", false
		}
		left, isLeft := textOf(e.X)
		right, isRight := textOf(e.Y)
		if !isLeft && !isRight {
			return "", false
		}
		if !isLeft {
			left = "…"
		}
		if !isRight {
			right = "…"
		}
		return left + right, true
	}
	return "", false
}
