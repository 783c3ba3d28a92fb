package lang

import (
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

// Verb returns which kind of statement a text is, in capitals, for logs and metrics:
// INSERT, UPDATE, DELETE or MERGE where it begins with that word, or where that is the
// first write behind WITH or EXPLAIN; else its first word; empty for none, for a text that
// can't be read, and for a dialect without guards. It is no reading of the statement, and
// nothing may be decided by it.
func Verb(d dialect.Dialect, query string) string {
	tokens, ok := tokensOf(d, query)
	if !ok {
		return ""
	}
	word := func(i int) string { return strings.ToUpper(query[tokens[i].Start:tokens[i].End]) }
	first := slices.IndexFunc(tokens, func(t lex.Token) bool { return !t.Is('(') })
	if first < 0 || tokens[first].Kind != lex.Word {
		return ""
	}
	verb := word(first)
	if verb != "WITH" && verb != "EXPLAIN" {
		return verb
	}
	for i := first + 1; i < len(tokens); i++ {
		if tokens[i].Kind != lex.Word || tokens[i].Label {
			continue
		}
		switch w := word(i); w {
		case "INSERT", "UPDATE", "DELETE", "MERGE":
			// Not the locks of a SELECT ... FOR UPDATE and FOR NO KEY UPDATE.
			if before := word(i - 1); before != "FOR" && before != "KEY" {
				return w
			}
		}
	}
	return verb
}
