package session

import (
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

// Changes reports whether a statement may change its session or the tables, in addition to reading and writing rows and
// beginning and ending transactions. If this is unclear, Changes returns true. It also returns true for EXPLAIN,
// because SQLite executes a PRAGMA after EXPLAIN.
func Changes(query string) bool {
	if i := strings.IndexByte(query, ';'); i >= 0 && strings.TrimSpace(query[i+1:]) != "" {
		return true
	}
	word := FirstKeyword(query)
	return len(word) >= len(harmless) ||
		!slices.ContainsFunc(harmless[len(word)], func(w string) bool { return strings.EqualFold(w, word) })
}

// harmless are the first words, by their length, of the statements for which [Changes] returns false.
var harmless = [...][]string{
	3: {"END"},
	4: {"WITH"},
	5: {"BEGIN", "START", "MERGE"},
	6: {"SELECT", "INSERT", "UPDATE", "DELETE", "COMMIT", "VALUES"},
	7: {"REPLACE", "RELEASE"},
	8: {"ROLLBACK"},
	9: {"SAVEPOINT"},
}

// FirstKeyword returns the letters that a statement begins with, after blanks, opening brackets and comments. If the
// comments are unclear, it returns no letters: databases differ in whether comments nest, whether a carriage return
// ends a comment, and whether a comment with an exclamation mark is code.
func FirstKeyword(query string) string {
	for {
		for query != "" && (query[0] == ' ' || query[0] == '(' || '\t' <= query[0] && query[0] <= '\r') {
			query = query[1:]
		}
		var comment string
		var found bool
		switch {
		case strings.HasPrefix(query, "--"):
			comment, query, found = strings.Cut(query[2:], "\n")
			found = found && strings.IndexByte(strings.TrimSuffix(comment, "\r"), '\r') < 0
		case strings.HasPrefix(query, "/*"):
			comment, query, found = strings.Cut(query[2:], "*/")
			isCode := strings.IndexByte(comment[:min(2, len(comment))], '!') >= 0
			found = found && !isCode && !strings.Contains(comment, "/*")
		default:
			return lex.Letters(query)
		}
		if !found {
			return ""
		}
	}
}
