package lex

import "unicode/utf8"

// stringKind decides the meaning of a backslash in a string constant.
type stringKind uint8

const (
	rawString    stringKind = iota // a character
	plainString                    // by standard_conforming_strings, if there is that
	escapeString                   // it takes the next byte with it
)

// str reads a string constant from its opening quote. The string must end at the same place under every setting that
// the session may have.
func (s *scanner) str(start int, kind stringKind) *Error {
	quote := s.src[s.pos]
	if quote == '"' {
		s.intricate = int32(len(s.toks)) // it may be a name
	}
	escapes, literal := s.reads(kind, quote)
	splits := s.rules.Encoding != "" && s.anyEncoding()
	// A continuation of x'0' or b'0' is a string without escapes, whatever the setting.
	keeps := s.rules.Continued.Is() && (kind == rawString || !literal)
	escaped, plain := false, true // whether the next byte is escaped, and whether it isn't, where backslashes escape
	for s.pos++; s.toQuote(quote, escaped); s.pos++ {
		switch c := s.src[s.pos]; {
		case c != quote:
			// A backslash may be the second byte of a character, in GBK, Big5, Shift JIS and the like.
			second := splits && s.src[s.pos-1] >= utf8.RuneSelf
			escaped, plain = escapes && plain && c == '\\', escaped || !escapes || c != '\\' || second
		case escaped && plain:
			return &Error{s.pos - 1, s.depends(), Ambiguous}
		case escaped && literal:
			return s.twoModes()
		case escaped:
			escaped, plain = false, true
		case s.at(1) == quote:
			s.pos++
		default:
			s.pos++
			if keeps && s.continues() {
				continue
			}
			s.emit(Text, start)
			if quote == '"' && s.escapes.Mode() != EscapesAll {
				return s.isName(start)
			}
			return nil
		}
	}
	return &Error{start, "a string is never closed", Rejected}
}

// toQuote moves to the next quote or backslash, unless the next byte may be escaped, and reports whether there is one.
func (s *scanner) toQuote(quote byte, escaped bool) bool {
	src, i := s.src, s.pos
	for !escaped && i < len(src) && src[i] != quote && src[i] != '\\' {
		i += s.width(i)
	}
	s.pos = i
	return i < len(src)
}

// width returns the number of bytes of the character at i, if a byte of the character may be ASCII.
func (s *scanner) width(i int) int {
	if src := s.src; src[i] >= utf8.RuneSelf && i+1 < len(src) && s.escapes.pair(src[i], src[i+1]) {
		return 2
	}
	return 1
}

// anyEncoding reports whether the session's encoding isn't known.
func (s *scanner) anyEncoding() bool {
	return s.escapes == EscapesUnknown || s.escapes&AnyEncoding != 0
}

// reads returns whether a backslash may escape in a string of a kind, and whether it may be a character.
func (s *scanner) reads(kind stringKind, quote byte) (escapes, literal bool) {
	switch {
	case kind == plainString && (s.rules.ConformingStrings.Is() || s.rules.TwoModes.Is()):
		mode := s.escapes.Mode()
		unknown := mode == EscapesUnknown
		escapes = unknown || mode == EscapesAll || mode == EscapesInText && quote == '\''
		return escapes, unknown || !escapes
	default:
		return kind == escapeString, kind != escapeString
	}
}

// twoModes is the error of a quote that ends a string only under one setting.
func (s *scanner) twoModes() *Error {
	if s.rules.ConformingStrings.Is() {
		return &Error{s.pos - 1, AmbiguousBackslash, Ambiguous}
	}
	return &Error{s.pos - 1, AmbiguousQuote, Ambiguous}
}

// swallowed reports whether the ASCII byte at i could be the second byte of a
// character, if the database read the text in GBK, Big5, Shift JIS or the like.
func (s *scanner) swallowed(i int) bool {
	return s.rules.Encoding != "" && s.anyEncoding() && s.src[i] >= '@' && s.src[i-1] >= utf8.RuneSelf && !s.partial
}

func (s *scanner) twoEncodings() *Error { return &Error{s.pos, s.depends(), Ambiguous} }

// depends is the reason why the next bytes can't be read in an unknown encoding.
func (s *scanner) depends() string {
	return "its meaning depends on " + s.rules.Encoding + "; pass the value as an argument, or put a " +
		"blank or quotes before this byte"
}

// continues reports whether the string just closed continues, at a quote after blanks with a newline among them, and
// moves to this quote. A separate string at this place might be read by other rules for backslashes.
func (s *scanner) continues() bool {
	back := s.pos
	newline := false
	for s.pos < len(s.src) {
		switch c := s.src[s.pos]; {
		case c == '\n' || c == '\r':
			newline = true
			s.pos++
		case IsSpace(c):
			s.pos++
		case c == '-' && s.at(1) == '-':
			s.lineComment()
		case c == '\'' && newline:
			return true
		default:
			s.pos = back
			return false
		}
	}
	s.pos = back
	return false
}
