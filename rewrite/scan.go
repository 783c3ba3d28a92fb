package rewrite

import (
	"slices"
	"strings"
)

// A scanned token is a piece of a rendered statement, as the second look reads it.
// It shares nothing with the lexer, so that a mistake in one isn't one in both.
type scanned struct {
	kind   byte  // 'w' word, 'q' quoted name, 's' string, 'n' number, '$' placeholder; else the character itself
	known  uint8 // of a word that means something here: its index in known; else 0
	lo, hi int32
}

// word returns such a word in lower case; "" for others.
func (t scanned) word() string { return known[t.known] }

// known are the words that mean something to the second look, behind an empty one.
var known = append([]string{""}, strings.Fields(`
		all analyse analyze and as asymmetric between by case collate conflict constraint default delete
		distinct do else end escape except explain fetch for from glob group having ilike
		in indexed insert intersect into is join lateral like limit match matched merge not
		nothing offset on only operator or order overlaps overriding recursive regexp replace returning select
		set source symmetric system target then to union update user using value values verbose
		when where window with within zone`)...)

var knownIndex = func() map[string]uint8 {
	index := make(map[string]uint8)
	for i, w := range known {
		index[w] = uint8(i)
	}
	return index
}()

// lookup returns the index of a word in known; 0 for others.
func lookup(s string) uint8 {
	var folded [12]byte
	if len(s) > len(folded) {
		return 0
	}
	for i := range len(s) {
		folded[i] = s[i]
		if s[i] >= 'A' && s[i] <= 'Z' {
			folded[i] += 'a' - 'A'
		}
	}
	return knownIndex[string(folded[:len(s)])]
}

// scan returns the tokens of a rendered statement; ok is false where it can't be
// read. Backslashes in plain strings of PostgreSQL are characters: a text that
// reads otherwise without standard_conforming_strings isn't rendered.
func scan(d Dialect, s string, toks []scanned) (_ []scanned, ok bool) {
	toks = slices.Grow(toks, len(s)/4)
	for i := 0; i < len(s); {
		lo, kind, c := i, s[i], s[i]
		next := byte(0)
		if i+1 < len(s) {
			next = s[i+1]
		}
		switch {
		case c == ' ' || c >= '\t' && c <= '\r' || d == SQLite && strings.HasPrefix(s[i:], "\uFEFF"):
			i++
			if c == 0xEF {
				i += 2
			}
			continue
		case c == '-' && next == '-':
			i = lineEnd(d, s, i)
			continue
		case c == '/' && next == '*':
			if i = commentEnd(d, s, i); i < 0 {
				return nil, false
			}
			continue
		case c == '\'':
			kind, i = 's', quoteEnd(s, i+1, c, false)
		case c == '"' || c == '`' && d == SQLite:
			kind, i = 'q', quoteEnd(s, i+1, c, false)
		case c == '[' && d == SQLite:
			kind, i = 'q', endOf(s, i, "]")
		case d == Postgres && (c == 'e' || c == 'E') && next == '\'':
			kind, i = 's', continuedEnd(s, quoteEnd(s, i+2, '\'', true))
		case d == Postgres && strings.IndexByte("bBxXnN", c) >= 0 && next == '\'', d == SQLite && (c == 'x' || c == 'X') && next == '\'':
			kind, i = 's', quoteEnd(s, i+2, '\'', false)
		case d == Postgres && (c == 'u' || c == 'U') && (strings.HasPrefix(s[i+1:], "&'") || strings.HasPrefix(s[i+1:], `&"`)):
			kind, i = 's', quoteEnd(s, i+3, s[i+2], false)
			if s[lo+2] == '"' {
				kind = 'q'
			}
		case c >= '0' && c <= '9' || c == '.' && next >= '0' && next <= '9':
			for kind = 'n'; i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i] == '.' && !strings.HasPrefix(s[i:], "..")); i++ {
			}
		case inName(c) && c != '$':
			for kind = 'w'; i < len(s) && (inName(s[i]) || s[i] >= '0' && s[i] <= '9'); i++ {
			}
		case c == '$' && d == Postgres && !(next >= '0' && next <= '9'):
			tag := strings.IndexByte(s[i+1:], '$')
			if tag < 0 {
				return nil, false
			}
			kind, i = 's', endOf(s, i+tag+2, s[i:i+tag+2])
		case c == '?' && d == SQLite, c == '$' && d == Postgres:
			kind = '$'
			for i++; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
			}
		case d == SQLite && strings.IndexByte(":@#$", c) >= 0:
			kind = '$'
			i = variableEnd(s, i+1)
		default:
			i++
		}
		if i < 0 {
			return nil, false
		}
		t := scanned{kind: kind, lo: int32(lo), hi: int32(i)}
		if kind == 'w' {
			t.known = lookup(s[lo:i])
		}
		toks = append(toks, t)
	}
	return toks, true
}

func inName(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c == '$' || c >= 0x80
}

// endOf returns where the next end behind i ends; -1 if there is none.
func endOf(s string, i int, end string) int {
	n := strings.Index(s[i:], end)
	if n < 0 {
		return -1
	}
	return i + n + len(end)
}

func lineEnd(d Dialect, s string, i int) int {
	for i < len(s) && s[i] != '\n' && (s[i] != '\r' || d == SQLite) {
		i++
	}
	return i
}

// commentEnd returns the place behind the comment that begins at i, which in SQLite
// needs no end.
func commentEnd(d Dialect, s string, i int) int {
	for depth := 0; i+1 < len(s); i++ {
		switch {
		case s[i:i+2] == "*/":
			i++
			if depth--; depth == 0 {
				return i + 1
			}
		case s[i:i+2] == "/*" && (depth == 0 || d == Postgres):
			i++
			depth++
		}
	}
	if d == SQLite {
		return len(s)
	}
	return -1
}

// quoteEnd returns the place behind the quote that ends what has begun before i.
func quoteEnd(s string, i int, quote byte, escapes bool) int {
	for ; i < len(s); i++ {
		switch {
		case s[i] == '\\' && escapes:
			i++
		case s[i] != quote:
		case i+1 < len(s) && s[i+1] == quote:
			i++
		default:
			return i + 1
		}
	}
	return -1
}

// continuedEnd returns the end of a string with escapes that has come to i, which
// goes on behind a newline.
func continuedEnd(s string, i int) int {
	for i >= 0 {
		j, newline := i, false
		for j < len(s) {
			if s[j] == '\n' || s[j] == '\r' {
				newline = true
			} else if strings.HasPrefix(s[j:], "--") {
				j = lineEnd(Postgres, s, j)
				continue
			} else if s[j] != ' ' && (s[j] < '\t' || s[j] > '\r') {
				break
			}
			j++
		}
		if !newline || j == len(s) || s[j] != '\'' {
			return i
		}
		i = quoteEnd(s, j+1, '\'', true)
	}
	return i
}

// variableEnd returns the end of SQLite's named placeholder, with Tcl's suffixes.
func variableEnd(s string, i int) int {
	for i < len(s) {
		switch {
		case inName(s[i]) || s[i] >= '0' && s[i] <= '9':
			i++
		case strings.HasPrefix(s[i:], "::"):
			i += 2
		case s[i] == '(':
			return endOf(s, i, ")")
		default:
			return i
		}
	}
	return i
}
