package read

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

// plainIsNotSeen checks that the result of parsing a text is the same if no bracket is marked as plain.
func plainIsNotSeen(t *testing.T, g *lex.Grammar, sql string) {
	t.Helper()
	var got [2]string
	for i := range got {
		x, err := Open(g, sql, lex.EscapesUnknown)
		if err != nil {
			return
		}
		for n := range x.Tokens {
			x.Tokens[n].Plain = x.Tokens[n].Plain && i == 0
		}
		inputs := x.NumberInputs()
		var b strings.Builder
		fmt.Fprintf(&b, "%+v\n", inputs)
		b.WriteString(show(x))
		got[i] = b.String() + answers(g, sql, i == 0)
		x.Close()
	}
	if got[0] != got[1] {
		t.Errorf("%s\nis read as\n%s\nand without plain brackets as\n%s", sql, got[0], got[1])
	}
}

// answers returns what the methods answer about the statements' conditions and encoding.
func answers(g *lex.Grammar, sql string, plain bool) string {
	x, _ := Open(g, sql, lex.EscapesUnknown)
	defer x.Close()
	for n := range x.Tokens {
		x.Tokens[n].Plain = x.Tokens[n].Plain && plain
	}
	x.NumberInputs()
	var b strings.Builder
	for x.Next() {
		fmt.Fprintln(&b, x.ChangesEncoding())
		for i := range x.Writes {
			if w := &x.Writes[i]; !w.Where.Empty() {
				fmt.Fprintln(&b, x.Repeatable(w.Where.Range), x.mayFail(int(w.Where.Lo), int(w.Where.Hi)), x.Source(w.Where.Range))
			}
		}
	}
	return b.String()
}

// TestPlainIsNotSeen tries the statements of package rewrite's tests, and variants with more lists.
func TestPlainIsNotSeen(t *testing.T) {
	lists := []string{"(1, 2)", "()", "(now())", "('a', $1)", "('client_encoding')", "(-1)", "(1::int)", "(CAST(1 AS int))", "(x, 1)",
		"(UPDATE books SET a = 1)", "(DELETE FROM books)", "('books')", "(?, ?2, :a)", `("a")`, "[1, 2]", "([1])", "(1.5, .5, 1e5)", "(E'a', x'00')", "(1 + 1)", "(1->1)"}
	r := rand.New(rand.NewPCG(3, 4))
	for name, g := range grammars {
		for _, sql := range guarded(t, name) {
			plainIsNotSeen(t, g, sql)
			words := strings.Split(sql, " ")
			for range 5 {
				at := r.IntN(len(words) + 1)
				plainIsNotSeen(t, g, strings.Join(words[:at], " ")+" "+lists[r.IntN(len(lists))]+" "+strings.Join(words[at:], " "))
			}
		}
	}
}

// TestPlainBracketHasPlainTokens checks that a bracket is plain if all its tokens are plain.
func TestPlainBracketHasPlainTokens(t *testing.T) {
	for name, g := range grammars {
		for _, sql := range append(guarded(t, name), "SELECT (1, 'a', $1), (), (1, (2)), (a), [1], (1;2), (1 + 2), (\"a\"), (?), (1.5), (1e5)") {
			toks, err := lex.Scan(g.Lex, sql, lex.EscapesUnknown, nil)
			if err != nil {
				continue
			}
			for i := range toks {
				want := toks[i].Is('(') || toks[i].Is('[')
				for n := i + 1; want && n < int(toks[i].Mate); n++ {
					tok := &toks[n]
					want = tok.Is(',') || tok.Kind == lex.Number || tok.Kind == lex.Text || tok.Kind == lex.Param
				}
				if toks[i].Plain != want {
					t.Errorf("%s: of %s at %d it is said that plain is %v", name, sql, toks[i].Start, toks[i].Plain)
				}
			}
		}
	}
}
