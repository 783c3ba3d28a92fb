package confirm

import "strings"

// A scanner goes through a rendered statement token by token. It shares nothing with
// the lexer of the first reading, so that a mistake in one isn't one in both.
type scanner struct {
	dialect *Dialect
	text    string
	sign    sign // of the current token
	lo, hi  int  // where it stands
	failed  bool // the text can't be read
	inputs  inputs
	numbers []int // that the guard adds
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
	i, text, bytes := s.hi, s.text, &s.dialect.bytes
	for i < len(text) {
		switch c := text[i]; bytes[c] {
		case blankByte:
			i++
			continue
		case singleByte:
			s.sign, s.lo, s.hi = sign(c), i, i+1
			return true
		case nameByte:
			hi := i + 1
			for hi < len(text) && inName[text[hi]] {
				hi++
			}
			s.sign, s.lo, s.hi = signWord, i, hi
			if hi > i+1 || hi == len(text) || text[hi] != '\'' && text[hi] != '&' {
				return true
			}
			s.letter()
		case digitByte:
			s.lo = i
			s.number()
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

// comment returns the place behind a comment or byte order mark at i, which are like
// white space; i if there is none, and -1 if a comment has no end.
func (s *scanner) comment(i int) int {
	switch c := s.text[i]; {
	case c == '-' && s.at(i+1) == '-' && s.dialect.dashes(s.text, i), c == '#' && s.dialect.HashComments.Is():
		return s.dialect.lineEnd(s.text, i)
	case c == '/' && s.at(i+1) == '*' && s.dialect.isCode(s.text, i):
		return -1
	case c == '/' && s.at(i+1) == '*':
		return s.dialect.commentEnd(s.text, i)
	case c == firstOfMark && strings.HasPrefix(s.text[i:], "\uFEFF"):
		return i + 3
	}
	return i
}

// letter reads the string or quoted name that a letter introduces, if it does.
func (s *scanner) letter() {
	for _, start := range s.dialect.Introduced {
		if hi := s.lo + len(start); hi <= len(s.text) && isFolded(s.text[s.lo:hi], start) {
			s.introduced(start, hi)
			return
		}
	}
}

// introduced reads a string or name with its first quote before i.
func (s *scanner) introduced(start string, i int) {
	quote, escapes := s.text[i-1], start == s.dialect.Escaped
	s.sign, s.hi = signString, quoteEnd(s.text, i, quote, escapes)
	if quote == '"' {
		s.sign = signName
	}
	if s.dialect.TwoModes.Is() {
		s.hi = s.dialect.stringEnd(s.text, i, quote)
	}
	if escapes {
		s.hi = s.dialect.continuedEnd(s.text, s.hi)
	}
}

// number reads digits and dots, but not the two dots of a range.
func (s *scanner) number() {
	i, text := s.lo, s.text
	for i < len(text) && (isDigit(text[i]) || text[i] == '.' && s.at(i+1) != '.') {
		i++
	}
	s.sign, s.hi = signNumber, i
}

// other reads what begins with a special byte.
func (s *scanner) other(c byte) {
	d, i := s.dialect, s.lo
	switch {
	case c == firstOfMark: // of another character
		for i++; i < len(s.text) && inName[s.text[i]]; i++ {
		}
		s.sign, s.hi = signWord, i
	case c == '.' && isDigit(s.at(i+1)):
		s.number()
	case isDigit(c):
		s.numberOrName()
	case c == '\'':
		s.sign, s.hi = signString, d.stringEnd(s.text, i+1, c)
	case c == '"':
		s.sign, s.hi = signName, d.stringEnd(s.text, i+1, c)
	case c == '`':
		s.sign, s.hi = signName, quoteEnd(s.text, i+1, c, false)
	case c == '[':
		s.sign, s.hi = signName, endOf(s.text, i, "]")
	case c == '$' && d.DollarQuotes.Is() && !isDigit(s.at(i+1)):
		s.sign, s.hi = signString, dollarEnd(s.text, i)
	case c == d.Placeholder:
		end, number := digits(s.text, i+1)
		s.sign, s.hi = signInput, end
		s.inputs.see(end-i-1, number, s.numbers)
	case c == '-' || c == '/' || c == '.':
		s.sign, s.hi = sign(c), i+1
	default:
		s.sign, s.hi = signInput, variableEnd(s.text, i+1)
	}
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// A byteKind is what a token may be that begins with a byte.
type byteKind uint8

const (
	specialByte byteKind = iota // it depends on what follows, or on the dialect
	blankByte
	nameByte
	digitByte
	singleByte // a token by itself
)

// kindOf returns the kind that a byte has in every dialect, but for special bytes.
func kindOf(c byte) byteKind {
	switch {
	case c == ' ' || c >= '\t' && c <= '\r':
		return blankByte
	case isDigit(c):
		return digitByte
	case inName[c] && c != '$':
		return nameByte
	}
	return singleByte
}

// firstOfMark is the first byte of a byte order mark in UTF-8.
const firstOfMark = 0xEF

// inName holds for the bytes that may continue a word.
var inName = func() (in [256]bool) {
	for i := range in {
		c := byte(i)
		in[i] = c|0x20 >= 'a' && c|0x20 <= 'z' || isDigit(c) || c == '_' || c == '$' || c >= 0x80
	}
	return in
}()
