package catalogue

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Remedies are for programmers and for operators: a text that names a function also names the command.
func TestRemediesNameCommands(t *testing.T) {
	commands := map[string]string{
		"tokens.Store.Setup": "sqlfence init --apply", "tokens.Store.Rotate": "sqlfence tokens rotate",
		"tokens.Store.Repair": "sqlfence tokens repair", "schema.Seal": "sqlfence seal --apply",
		"schema.Unseal": "sqlfence unseal --apply", "schema.AddFence": "sqlfence add-fence --apply",
		"sqlfence.WithSchema": "sqlfence --schema", "tokens.Store.RecordIssuers": "sqlfence init --issuers --apply",
	}
	found := 0
	judge := func(at token.Position, text string) {
		for call, command := range commands {
			if strings.Contains(text, call) {
				found++
				if !strings.Contains(text, command) {
					t.Errorf("%s: %q doesn't name %s", at, text, command)
				}
			}
		}
	}
	for _, pattern := range []string{"*.go", "../setuperr/*.go", "../sqltext/*.go"} {
		files, _ := filepath.Glob(pattern)
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			set := token.NewFileSet()
			f, err := parser.ParseFile(set, name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				e, ok := n.(ast.Expr)
				text, is := written(e)
				if ok && is {
					judge(set.Position(e.Pos()), text)
				}
				return !is
			})
		}
	}
	if found < 15 {
		t.Errorf("%d calls are named, want more", found)
	}
}

// written returns the text of a string, or of several that are added.
func written(e ast.Expr) (text string, ok bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, _ = strconv.Unquote(e.Value)
			return text, true
		}
	case *ast.BinaryExpr:
		if e.Op != token.ADD {
			return "", false
		}
		left, isLeft := written(e.X)
		right, isRight := written(e.Y)
		return left + right, isLeft || isRight
	}
	return "", false
}
