package rewrite

import "strings"

// A scanner goes through a rendered statement token by token, for the second look.
// It shares nothing with the lexer, so that a mistake in one isn't one in both.
//
// Backslashes in plain strings of PostgreSQL are characters: a text that reads
// otherwise without standard_conforming_strings isn't rendered.
type scanner struct {
	dialect Dialect
	text    string
	sign    sign // of the current token
	lo, hi  int  // where it stands
	failed  bool // the text can't be read
}

// A sign says what a token is: one of these, or a character that stands by itself.
type sign uint8

const (
	signWord   sign = 'w'
	signName   sign = 'q' // in quotes
	signString sign = 's'
	signNumber sign = 'n'
	signInput  sign = '$' // a placeholder
)

// next moves to the next token, and reports whether there is one that can be read.
func (s *scanner) next() bool {
	i := s.hi
	for i < len(s.text) {
		switch c := s.text[i]; bytesOf[c] {
		case blankByte:
			i++
			continue
		case nameByte:
			s.lo = i
			s.word()
		case digitByte:
			s.lo = i
			s.number()
		case singleByte:
			s.sign, s.lo, s.hi = sign(c), i, i+1
			return true
		default:
			s.lo = i
			if i = s.comment(i); i != s.lo {
				if s.failed = i < 0; s.failed {
					return false
				}
				continue
			}
			s.other(c)
		}
		s.failed = s.hi < 0
		return !s.failed
	}
	s.sign, s.lo = 0, i
	return false
}

// at returns the byte at i, or 0 behind the end.
func (s *scanner) at(i int) byte {
	if i < len(s.text) {
		return s.text[i]
	}
	return 0
}

// comment returns the place behind what is like a blank at i: a comment, or SQLite's
// byte order mark; -1 if a comment has no end.
func (s *scanner) comment(i int) int {
	switch c := s.text[i]; {
	case c == '-' && s.at(i+1) == '-':
		return lineEnd(s.dialect, s.text, i)
	case c == '/' && s.at(i+1) == '*':
		return commentEnd(s.dialect, s.text, i)
	case c == 0xEF && s.dialect == SQLite && strings.HasPrefix(s.text[i:], "\uFEFF"):
		return i + 3
	}
	return i
}

// word reads a word, or the string or quoted name that a letter introduces.
func (s *scanner) word() {
	i := s.lo + 1
	for i < len(s.text) && inName[s.text[i]] {
		i++
	}
	s.sign, s.hi = signWord, i
	if i > s.lo+1 || s.at(i) != '\'' && s.at(i) != '&' {
		return
	}
	postgres, plain := s.dialect == Postgres, s.text[i] == '\''
	switch letter := s.text[s.lo] | 0x20; {
	case plain && (letter == 'x' || postgres && (letter == 'b' || letter == 'n')):
		s.sign, s.hi = signString, quoteEnd(s.text, i+1, '\'', false)
	case plain && postgres && letter == 'e':
		s.sign, s.hi = signString, continuedEnd(s.text, quoteEnd(s.text, i+1, '\'', true))
	case postgres && letter == 'u' && strings.HasPrefix(s.text[i:], "&'"):
		s.sign, s.hi = signString, quoteEnd(s.text, i+2, '\'', false)
	case postgres && letter == 'u' && strings.HasPrefix(s.text[i:], `&"`):
		s.sign, s.hi = signName, quoteEnd(s.text, i+2, '"', false)
	}
}

// number reads digits and dots, but not the two dots of a range.
func (s *scanner) number() {
	i := s.lo
	for isDigit(s.at(i)) || s.at(i) == '.' && s.at(i+1) != '.' {
		i++
	}
	s.sign, s.hi = signNumber, i
}

// other reads what begins with a special byte.
func (s *scanner) other(c byte) {
	text, i := s.text, s.lo
	postgres, sqlite := s.dialect == Postgres, s.dialect == SQLite
	switch {
	case c == 0xEF:
		s.word()
	case c == '.' && isDigit(s.at(i+1)):
		s.number()
	case c == '\'':
		s.sign, s.hi = signString, quoteEnd(text, i+1, c, false)
	case c == '"' || c == '`' && sqlite:
		s.sign, s.hi = signName, quoteEnd(text, i+1, c, false)
	case c == '[' && sqlite:
		s.sign, s.hi = signName, endOf(text, i, "]")
	case c == '$' && postgres && !isDigit(s.at(i+1)):
		s.sign, s.hi = signString, -1
		if tag := strings.IndexByte(text[i+1:], '$'); tag >= 0 {
			s.hi = endOf(text, i+tag+2, text[i:i+tag+2])
		}
	case c == '?' && sqlite, c == '$' && postgres:
		for i++; isDigit(s.at(i)); i++ {
		}
		s.sign, s.hi = signInput, i
	case sqlite && (c == ':' || c == '@' || c == '#' || c == '$'):
		s.sign, s.hi = signInput, variableEnd(text, i+1)
	default:
		s.sign, s.hi = sign(c), i+1
	}
}

// A byteKind is what a token may be that begins with a byte.
type byteKind uint8

const (
	specialByte byteKind = iota // it depends on what follows, or on the dialect
	blankByte
	nameByte
	digitByte
	singleByte // a token by itself
)

// bytesOf tells the kind of each byte.
var bytesOf = func() (kinds [256]byteKind) {
	for i := range kinds {
		switch c := byte(i); {
		case c == ' ' || c >= '\t' && c <= '\r':
			kinds[i] = blankByte
		case isDigit(c):
			kinds[i] = digitByte
		case inName[i] && c != '$' && c != 0xEF:
			kinds[i] = nameByte
		case c != 0xEF && strings.IndexByte("-/.'\"`[$?:@#", c) < 0:
			kinds[i] = singleByte
		}
	}
	return kinds
}()

// inName holds for the bytes that may continue a word.
var inName = func() (in [256]bool) {
	for i := range in {
		c := byte(i)
		in[i] = c|0x20 >= 'a' && c|0x20 <= 'z' || isDigit(c) || c == '_' || c == '$' || c >= 0x80
	}
	return in
}()

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
		case inName[s[i]]:
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
