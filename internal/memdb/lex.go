package memdb

import "strings"

// A token is a piece of a statement.
type token struct {
	kind       byte   // 'w' word, 'q' quoted name, 's' string, 'n' number, 'p' placeholder, 'o' operator, 0 end
	text       string // words in upper case, names and strings without quotes
	start, end int
}

// lex splits a text into its tokens, without comments.
func lex(text string) []token {
	var tokens []token
	for i := 0; i < len(text); {
		rest, c := text[i:], text[i]
		switch {
		case strings.ContainsRune(" \t\r\n", rune(c)):
			i++
			continue
		case strings.HasPrefix(rest, "--"):
			i += span(rest, func(c byte) bool { return c != '\n' })
			continue
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest, "*/")
			if end < 0 {
				return tokens
			}
			i += end + 2
			continue
		}
		t := token{start: i}
		switch {
		case c == '\'' || c == '"' || c == '`':
			t.kind = 'q'
			if c == '\'' {
				t.kind = 's'
			}
			t.text, t.end = quoted(text, i)
		case isDigit(c):
			t.kind, t.end = 'n', i+span(rest, func(c byte) bool { return isDigit(c) || c == '.' })
		case isLetter(c):
			t.kind, t.end = 'w', i+span(rest, isWord)
		case c == '?' || c == ':' || c == '@':
			t.kind, t.end = 'p', i+1+span(rest[1:], isWord)
		default:
			t.kind, t.end = 'o', i+1
			if len(rest) > 1 && strings.Contains(" <= >= <> != || ", " "+rest[:2]+" ") {
				t.end++
			}
		}
		switch t.kind {
		case 'w':
			t.text = strings.ToUpper(text[i:t.end])
		case 'n', 'p', 'o':
			t.text = text[i:t.end]
		}
		tokens = append(tokens, t)
		i = t.end
	}
	return tokens
}

// quoted returns what the quotes at i hold, and where they end.
func quoted(text string, i int) (string, int) {
	var b strings.Builder
	for j := i + 1; j < len(text); j++ {
		if text[j] == text[i] {
			if j+1 == len(text) || text[j+1] != text[i] {
				return b.String(), j + 1
			}
			j++
		}
		b.WriteByte(text[j])
	}
	panic(errorf("unfinished quotes"))
}

func span(text string, of func(byte) bool) int {
	n := 0
	for n < len(text) && of(text[n]) {
		n++
	}
	return n
}

func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLetter(c byte) bool { return c == '_' || c|' ' >= 'a' && c|' ' <= 'z' || c >= 0x80 }
func isWord(c byte) bool   { return isLetter(c) || isDigit(c) }
