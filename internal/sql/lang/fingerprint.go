package lang

import (
	"strings"

	"github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

// Fingerprint returns a statement without its values: constants and placeholders are ?, a
// list of them in brackets is (?), and so are several such rows, of VALUES or IN;
// comments are left out, and blanks are one. So statements that differ in their values
// only, or in how many there are, have one fingerprint. Words stay as they were written,
// those in quotes, too, which are names.
//
// Of a text that can't be read, or for a dialect without guards, it returns the first word
// with "…" behind it: the rest may hold values. It is for reports, and nothing may
// be decided by it.
func Fingerprint(d dialect.Dialect, query string) string {
	tokens, ok := tokensOf(d, query)
	if !ok {
		return firstWord(query) + " …"
	}
	var b strings.Builder
	b.Grow(len(query))
	var last lex.Token
	for i := 0; tokens[i].Kind != lex.End; i++ {
		t := &tokens[i]
		if b.Len() > 0 && t.Start > last.End && !last.Is('(') && !t.Is(')') && !t.Is(',') {
			b.WriteByte(' ')
		}
		switch {
		case t.Is('(') && isList(tokens, i):
			b.WriteString("(?)")
			if last.Is('(') || last.IsWord(query, "values") {
				i = lastList(tokens, i)
			} else {
				i = int(t.Mate)
			}
		case t.Kind == lex.Text, t.Kind == lex.Number, t.Kind == lex.Param:
			b.WriteByte('?')
		default:
			b.WriteString(query[t.Start:t.End])
		}
		last = tokens[i]
	}
	return b.String()
}

// isList reports whether a bracket holds values alone, and at least one.
func isList(tokens []lex.Token, open int) bool {
	return tokens[open].Plain && int(tokens[open].Mate) > open+1
}

// lastList returns the token that ends the last one of the lists that begin here, with
// commas between them.
func lastList(tokens []lex.Token, open int) int {
	for {
		end := int(tokens[open].Mate)
		open = end + 2
		if !tokens[end+1].Is(',') || !tokens[open].Is('(') || !isList(tokens, open) {
			return end
		}
	}
}

// tokensOf returns the tokens of a text, if there is a dialect to read it by.
func tokensOf(d dialect.Dialect, query string) ([]lex.Token, bool) {
	g, err := grammar(d)
	if err != nil {
		return nil, false
	}
	tokens, fault := lex.Scan(g.Lex, query, lex.EscapesUnknown, nil)
	return tokens, fault == nil
}

// firstWord returns the letters that a text begins with.
func firstWord(query string) string {
	query = strings.TrimLeft(query, " \t\r\n\f\v(")
	end := strings.IndexFunc(query, func(r rune) bool { return r|0x20 < 'a' || r|0x20 > 'z' })
	if end < 0 {
		end = len(query)
	}
	return query[:end]
}
