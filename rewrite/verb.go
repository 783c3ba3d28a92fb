package rewrite

import (
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/rewrite/internal/lex"
)

// Verb returns which kind of statement a text is, in capitals, for logs and metrics:
// INSERT, UPDATE, DELETE or MERGE where it begins with that word, or where that is the
// first write behind WITH or EXPLAIN; else its first word; empty for none. It is no
// reading of the statement, and nothing may be decided by it.
func (r *Rewriter) Verb(query string) string {
	if r.dialect == nil {
		return ""
	}
	tokens, err := lex.Scan(r.dialect.grammar().Lex, query, lex.SCSUnknown, nil)
	if err != nil {
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
