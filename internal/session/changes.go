package session

import "strings"

// Changes reports whether a statement may change its session or the tables, in addition to reading and writing rows and
// beginning and ending transactions. If this is unclear, Changes returns true. It also returns true for EXPLAIN,
// because SQLite executes a PRAGMA after EXPLAIN.
func Changes(query string) bool {
	if i := strings.IndexByte(query, ';'); i >= 0 && strings.TrimSpace(query[i+1:]) != "" {
		return true
	}
	switch word := FirstWord(query); len(word) {
	case 3:
		return !strings.EqualFold(word, "END")
	case 4:
		return !strings.EqualFold(word, "WITH")
	case 5:
		return !strings.EqualFold(word, "BEGIN") && !strings.EqualFold(word, "START") &&
			!strings.EqualFold(word, "MERGE")
	case 6:
		return !strings.EqualFold(word, "SELECT") && !strings.EqualFold(word, "INSERT") &&
			!strings.EqualFold(word, "UPDATE") && !strings.EqualFold(word, "DELETE") &&
			!strings.EqualFold(word, "COMMIT") && !strings.EqualFold(word, "VALUES")
	case 7:
		return !strings.EqualFold(word, "REPLACE") && !strings.EqualFold(word, "RELEASE")
	case 8:
		return !strings.EqualFold(word, "ROLLBACK")
	case 9:
		return !strings.EqualFold(word, "SAVEPOINT")
	}
	return true
}

// FirstWord returns the letters that a statement begins with, after blanks, opening brackets and comments. If the
// comments are unclear, it returns no letters: databases differ in whether comments nest, whether a carriage return
// ends a comment, and whether a comment with an exclamation mark is code.
func FirstWord(query string) string {
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
			end := 0
			for end < len(query) && query[end]|0x20 >= 'a' && query[end]|0x20 <= 'z' {
				end++
			}
			return query[:end]
		}
		if !found {
			return ""
		}
	}
}
