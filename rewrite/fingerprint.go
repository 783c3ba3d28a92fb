package rewrite

import (
	"strings"

	"github.com/sqlfence/sqlfence/rewrite/internal/lex"
)

// Fingerprint returns a statement without its values: constants and placeholders are ?, a
// list of them in brackets is (?), and so are several such lists behind each other;
// comments are left out, and blanks are one. So statements that differ in their values
// only, or in how many there are, have one fingerprint. Words stay as they were written,
// those in quotes, too, which are names.
//
// Of a text that can't be read, or for a dialect without guards, it returns the first word
// with "…" behind it: the rest may hold values. It is for reports, and nothing may
// be decided by it.
func Fingerprint(d Dialect, query string) string {
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
		last = *t
		switch {
		case t.Is('(') && isList(tokens, i):
			b.WriteString("(?)")
			i = afterLists(tokens, i)
			last = tokens[i]
		case t.Kind == lex.Text, t.Kind == lex.Number, t.Kind == lex.Param:
			b.WriteByte('?')
		default:
			b.WriteString(query[t.Start:t.End])
		}
	}
	return b.String()
}

// isList reports whether a bracket holds values alone, and at least one.
func isList(tokens []lex.Token, open int) bool {
	return tokens[open].Plain && int(tokens[open].Mate) > open+1
}

// afterLists returns the token that ends the last one of the lists that begin here, with
// commas between them.
func afterLists(tokens []lex.Token, open int) int {
	for {
		end := int(tokens[open].Mate)
		if next := end + 2; !tokens[end+1].Is(',') || !tokens[next].Is('(') || !isList(tokens, next) {
			return end
		} else {
			open = next
		}
	}
}

// tokensOf returns the tokens of a text, if there is a dialect to read it by.
func tokensOf(d Dialect, query string) ([]lex.Token, bool) {
	says, err := d.guarded()
	if err != nil {
		return nil, false
	}
	tokens, fault := lex.Scan(says.grammar().Lex, query, lex.SCSUnknown, nil)
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
