package rewrite

import (
	"slices"
	"strings"
	"testing"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/internal/test/random"
)

// If a change of a statement means nothing to the database, it must mean nothing to the rewriter: the plan has the same
// verdict, and the same tokens around the same guard.

// sameMeaning compares the plan of a changed statement with the original's. The
// rendered texts are compared token by token, by equal.
func sameMeaning(t *testing.T, d databases.Dialect, s *sample, rules, changed string, equal func(a, b string) bool) {
	t.Helper()
	other := sample{sql: changed}
	p, q := s.plan(t, d, rules), other.plan(t, d, rules)
	if p.Verdict != q.Verdict || p.Refusal.Table != q.Refusal.Table || !slices.Equal(keysOf(p), keysOf(q)) || p.Inputs != q.Inputs {
		t.Errorf("%q: got %v %+v, want %v %+v as for %q", changed, q.Verdict, q.Refusal, p.Verdict, p.Refusal, s.sql)
		return
	}
	if p.Verdict != guard.Guard {
		return
	}
	a, b := renderedOf(t, p, valuesOf(p, rules)), renderedOf(t, q, valuesOf(q, rules))
	if strings.Contains(a.SQL, "/*DEFAULT*/") {
		return // words between which a comment may stand are in a comment
	}
	if !slices.EqualFunc(tokenTexts(t, d, a.SQL), tokenTexts(t, d, b.SQL), equal) || !slices.Equal(a.Args, b.Args) {
		t.Errorf("got %s %v\nwant the tokens of %s %v", b.SQL, b.Args, a.SQL, a.Args)
	}
}

func identical(a, b string) bool { return a == b }

// readable runs f for the chosen samples that the lexer takes, and reports whether all of these ran.
func readable(t *testing.T, choose func([]sample) []sample, f func(t *testing.T, d databases.Dialect, s *sample, rules string, toks []lex.Token)) (all bool) {
	return eachChosen(t, choose, func(t *testing.T, d databases.Dialect, s *sample, rules string) {
		if toks, err := scan(d, s.sql); err == nil {
			f(t, d, s, rules, toks)
		}
	})
}

// mayPart reports whether a blank may be put between two tokens that touch: the
// lexer splits operators and numbers into pieces that belong together.
func mayPart(a, b lex.Token) bool {
	bracket := func(t lex.Token) bool { return t.Kind == lex.Punct && strings.IndexByte("(),;[]", t.Char) >= 0 }
	return a.End < b.Start || b.Kind == lex.End || bracket(a) || bracket(b)
}

// TestBlanksMeanNothing puts blanks and comments between the tokens.
func TestBlanksMeanNothing(t *testing.T) {
	oneGoroutine(t)
	readable(t, random.Sample, func(t *testing.T, d databases.Dialect, s *sample, rules string, toks []lex.Token) {
		for _, blank := range []string{" ", "\n", "\t\r\n", " /* ) ; ' */ ", " -- it's; WHERE\n"} {
			var b strings.Builder
			b.WriteString(strings.TrimLeft(blank, " "))
			last := int32(0)
			for i, tok := range toks {
				b.WriteString(s.sql[last:tok.End])
				last = tok.End
				// In PostgreSQL a line break between two strings joins them. In MySQL two minus signs begin a comment
				// if a blank follows.
				joins := tok.Kind == lex.Text && i+1 < len(toks) && toks[i+1].Kind == lex.Text
				begins := strings.HasSuffix(s.sql[:tok.End], "--")
				if i+1 < len(toks) && mayPart(tok, toks[i+1]) && !joins && !begins {
					b.WriteString(blank)
				}
			}
			sameMeaning(t, d, s, rules, b.String(), identical)
		}
	})
}

// TestCaseMeansNothing changes the case of keywords and unquoted names.
func TestCaseMeansNothing(t *testing.T) {
	oneGoroutine(t)
	alternate := func(s string) string {
		b := []byte(strings.ToLower(s))
		for i := 0; i < len(b); i += 2 {
			if b[i] >= 'a' && b[i] <= 'z' {
				b[i] &^= 0x20
			}
		}
		return string(b)
	}
	ascii := func(convert func(string) string) func(string) string {
		return func(s string) string { // no database folds other letters
			return strings.Map(func(r rune) rune {
				if r < 0x80 {
					return rune(convert(string(r))[0])
				}
				return r
			}, s)
		}
	}
	readable(t, random.Sample, func(t *testing.T, d databases.Dialect, s *sample, rules string, toks []lex.Token) {
		for _, convert := range []func(string) string{ascii(strings.ToUpper), ascii(strings.ToLower), alternate} {
			var b strings.Builder
			last := int32(0)
			for _, tok := range toks {
				if tok.Kind == lex.Word {
					b.WriteString(s.sql[last:tok.Start])
					b.WriteString(convert(s.sql[tok.Start:tok.End]))
					last = tok.End
				}
			}
			b.WriteString(s.sql[last:])
			sameMeaning(t, d, s, rules, b.String(), strings.EqualFold)
		}
	})
}

// TestQuotesMeanNothing writes the table's name in each way that a database has.
func TestQuotesMeanNothing(t *testing.T) {
	oneGoroutine(t)
	ways := answers(t, map[databases.Dialect][]string{
		databases.Postgres: {`"books"`, `U&"books"`, `u&"\0062ook\+000073"`},
		databases.SQLite:   {`"books"`, `"BOOKS"`, "`books`", "`bOOks`", "[books]", "[Books]"},
		databases.MySQL:    {"`books`", "`bOOks`"},
	})
	readable(t, random.Sample, func(t *testing.T, d databases.Dialect, s *sample, rules string, toks []lex.Token) {
		for _, way := range ways[d] {
			var b strings.Builder
			last := int32(0)
			for _, tok := range toks {
				if tok.Kind == lex.Word && lex.EqualFold(s.sql[tok.Start:tok.End], "books") {
					b.WriteString(s.sql[last:tok.Start])
					b.WriteString(way)
					last = tok.End
				}
			}
			b.WriteString(s.sql[last:])
			sameMeaning(t, d, s, rules, b.String(), func(x, y string) bool {
				spelled := says(d).Grammar.Lex.FoldsQuoted.Is() && lex.EqualFold(x, "`books`") && lex.EqualFold(x, y) // by the guard
				return x == y || lex.EqualFold(x, "books") && y == way || spelled
			})
		}
	})
}

// TestAroundMeansNothing adds blanks, semicolons and comments before and after the text.
func TestAroundMeansNothing(t *testing.T) {
	oneGoroutine(t)
	readable(t, random.Sample, func(t *testing.T, d databases.Dialect, s *sample, rules string, _ []lex.Token) {
		for _, around := range [][2]string{{"", "\n-- books"}, {"", " /* books */"}, {"/* a */ ", ""}, {"-- a\n", "\n"}} {
			sameMeaning(t, d, s, rules, around[0]+s.sql+around[1], identical)
		}
		// Added semicolons are tokens, so only the verdicts are compared.
		behind := "\n;;"
		if isVersioned(rules) {
			behind = "\n;" // with more, drivers of SQLite would miscount
		}
		other := sample{sql: ";; " + s.sql + behind}
		if p, q := s.plan(t, d, rules), other.plan(t, d, rules); p.Verdict != q.Verdict {
			t.Errorf("%q: got %v, want %v", other.sql, q.Verdict, p.Verdict)
		}
	})
}

// TestWordsRightBehindNumbers leaves out the blanks after numbers. MySQL, and PostgreSQL before 15, read a word there
// as a separate word. The scanner must read the word in the same way, or refuse the statement.
func TestWordsRightBehindNumbers(t *testing.T) {
	oneGoroutine(t)
	refused := 0
	all := readable(t, everySample, func(t *testing.T, d databases.Dialect, s *sample, rules string, toks []lex.Token) {
		for i := range toks {
			if toks[i].Kind != lex.Number || toks[i+1].Kind != lex.Word {
				continue
			}
			before, behind := s.sql[:toks[i].Start]+"1e0", s.sql[toks[i+1].Start:]
			apart, right := sample{sql: before + " " + behind}, sample{sql: before + behind}
			p, q := apart.plan(t, d, rules), right.plan(t, d, rules)
			switch {
			case q.Verdict == guard.Refuse:
				refused++
			case p.Verdict != q.Verdict:
				t.Errorf("%s: %v, with a blank %v", right.sql, q.Verdict, p.Verdict)
			case q.Verdict == guard.Guard:
				if a, b := renderedOf(t, p, valuesOf(p, rules)).SQL, renderedOf(t, q, valuesOf(q, rules)).SQL; strings.ReplaceAll(a, "1e0 ", "1e0") != b {
					t.Errorf("%s: got %s, with a blank %s", right.sql, b, a)
				}
			}
		}
	})
	if !all {
		t.Skip("some samples haven't run: there is no counting the statements of all of them")
	}
	if refused < 100 {
		t.Errorf("%d are refused", refused)
	}
}
