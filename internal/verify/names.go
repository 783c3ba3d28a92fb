package verify

import (
	"encoding/json"
	"strings"
)

// unquoted reads a name in any of the quotes that SQLite and MySQL know.
func unquoted(s string) string {
	q := s[:1]
	switch q {
	case "`", `"`:
		return strings.ReplaceAll(s[1:len(s)-1], q+q, q)
	case "[":
		return s[1 : len(s)-1]
	}
	return s
}

// foldASCII writes ASCII letters small.
func foldASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

// list writes texts as a list in JSON.
func list(texts []string) string {
	b, _ := json.Marshal(texts) // texts always can be
	return string(b)
}
