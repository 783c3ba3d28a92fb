package lang

import (
	"strings"

	"github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

// Fingerprint returns a statement without its values: constants and placeholders are ?, a list of values in brackets is
// (?), and several such rows, of VALUES or IN, are one (?). Comments are left out, and each run of blanks is one blank.
// Statements that differ only in their values, or in the number of values, have the same fingerprint. Identifiers keep
// their spelling, with or without quotes.
//
// If a text can't be read, or the dialect has no guards, Fingerprint returns the first word followed by "…", because
// the rest may hold values. A fingerprint is for reports; no decision may depend on a fingerprint.
func Fingerprint(d dialect.Dialect, query string) string {
	tokens, ok := tokensOf(d, query)
	if !ok {
		return firstKeyword(query) + " …"
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

// lastList returns the closing bracket of the last list in a comma-separated sequence of lists that begins at open.
func lastList(tokens []lex.Token, open int) int {
	for {
		end := int(tokens[open].Mate)
		open = end + 2
		if !tokens[end+1].Is(',') || !tokens[open].Is('(') || !isList(tokens, open) {
			return end
		}
	}
}
