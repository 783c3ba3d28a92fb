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

// TestDocumentedReasonsExist shows that each documented reason begins a text of the rewriter's, so
// that none is kept that has got other words.
func TestDocumentedReasonsExist(t *testing.T) {
	t.Parallel()
	texts := rewriterTexts(t)
	for prefix := range documented {
		words := strings.TrimPrefix(prefix, "it can't be read: ") // which stands before the reader's own
		if !slices.ContainsFunc(texts, func(parts []string) bool { return begin(parts, words) }) {
			t.Errorf("no reason begins with %q", words)
		}
	}
}

// begin reports whether the parts of a text, with a word between each two of them, begin with words.
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

// rewriterTexts returns the strings in the code of the rewriter and of what reads for it, each in the parts that are
// put together with what the code doesn't show.
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

// named is what a sentence names of a statement.
var named = regexp.MustCompile(`%[sdv]`)

// parts returns the text of a string, or of several joined by +: a part ends where one isn't written out.
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
