package parsers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// TestDocumentedReasonsExist checks that each documented reason begins a string in the rewriter's code, so that no
// reason stays documented after its wording has changed.
func TestDocumentedReasonsExist(t *testing.T) {
	t.Parallel()
	texts := rewriterTexts(t)
	for prefix := range documented {
		words := strings.TrimPrefix(prefix, "it can't be read: ") // the prefix of every parser error
		if !slices.ContainsFunc(texts, func(parts []string) bool { return begin(parts, words) }) {
			t.Errorf("no reason begins with %q", words)
		}
	}
}

// begin reports whether a string that consists of the parts, with any word between two parts, begins with words.
func begin(parts []string, words string) bool {
	for i, part := range parts {
		if i > 0 {
			words = strings.TrimLeftFunc(words, func(r rune) bool { return r == '_' || unicode.IsLetter(r) })
		}
		if strings.HasPrefix(part, words) {
			return true
		}
		rest, ok := strings.CutPrefix(words, part)
		if !ok {
			return false
		}
		words = rest
	}
	return false
}

// rewriterTexts returns the strings in the code of the rewriter and of the parser. Each string is split into the parts
// between its format verbs and variables.
func rewriterTexts(t *testing.T) (texts [][]string) {
	t.Helper()
	for _, dir := range []string{"rewrite", "rewrite/internal/advise", "rewrite/internal/read", "rewrite/internal/render", "rewrite/internal/rules",
		"internal/sql/lex"} {
		paths, err := filepath.Glob(filepath.Join("..", "..", "..", "..", dir, "*.go"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %d files, %v", dir, len(paths), err)
		}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if e, ok := n.(ast.Expr); ok {
					texts = append(texts, parts(e))
				}
				return true
			})
		}
	}
	return texts
}

// named matches a format verb.
var named = regexp.MustCompile(`%[sdv]`)

// parts splits a string, or a sum of strings, at its format verbs and at operands that aren't literals.
func parts(e ast.Expr) []string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return named.Split(text, -1)
		}
	case *ast.BinaryExpr:
		if e.Op != token.ADD {
			break
		}
		x, y := parts(e.X), parts(e.Y)
		last := len(x) - 1
		return append(append(x[:last:last], x[last]+y[0]), y[1:]...)
	}
	return []string{"", ""}
}
