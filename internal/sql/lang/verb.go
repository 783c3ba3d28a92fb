package lang

import (
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

// Verb returns the kind of a statement in capitals, for logs and metrics. The kind is the first word. After WITH or
// EXPLAIN it is the first INSERT, UPDATE, DELETE or MERGE, if there is a write. Verb returns "" for an empty or
// unreadable text, and for a dialect without guards. It doesn't parse the statement, so no decision may depend on the
// result.
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
