package sqlfence

import (
	"slices"
	"strings"
)

// readsOnce: PostgreSQL reads a string constant when it prepares a statement: 'now' would be
// the same time ever after, and a time would be in the zone that the session was in. Such a
// constant has digits or one of the words. In doubt, with quotes of other kinds, comments
// and escapes, and where a constant goes on behind a line's end, it may be one.
func (postgres) readsOnce(query string) bool {
	for rest := query; ; {
		_, behind, found := strings.Cut(rest, "$")
		if !found {
			break
		}
		if behind == "" || behind[0] < '0' || behind[0] > '9' { // $$now$$
			return true
		}
		rest = behind
	}
	first := strings.IndexByte(query, '\'')
	if first < 0 {
		return false
	}
	if strings.ContainsAny(query, `"\`) || strings.Contains(query, "--") || strings.Contains(query, "/*") {
		return true
	}
	parts := strings.Split(query[first+1:], "'")
	for i, part := range parts {
		goesOn := i+1 < len(parts) && part != "" && strings.TrimSpace(part) == ""
		if i%2 == 0 && mayBeTime(part) || i%2 == 1 && goesOn {
			return true
		}
	}
	return false
}

var timeWords = []string{"now", "today", "tomorrow", "yesterday"}

func mayBeTime(constant string) bool {
	constant = strings.ToLower(constant)
	return strings.ContainsAny(constant, "0123456789") ||
		slices.ContainsFunc(timeWords, func(word string) bool { return strings.Contains(constant, word) })
}
