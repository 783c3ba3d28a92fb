package lex

// stringKind decides the meaning of a backslash in a string constant.
type stringKind uint8

const (
	rawString    stringKind = iota // a character
	plainString                    // by standard_conforming_strings, if there is that
	escapeString                   // it takes the next byte with it
)

// str reads a string constant from its opening quote.
func (s *scanner) str(start int, kind stringKind) *Error {
	if kind == plainString && s.rules.TwoModes.Is() {
		return s.twoModeText(start)
	}
	s.pos++
	escapes := kind == escapeString || kind == plainString && s.scs == SCSOff
	ambiguous := kind == plainString && s.scs == SCSUnknown && s.rules.ConformingStrings.Is()
	// What continues x'0' or b'0' is a string without escapes, whatever the setting.
	keeps := escapes || kind == rawString && s.rules.Continued.Is()
	for s.toQuote() {
		switch c := s.src[s.pos]; {
		case c == '\'' && s.at(1) == '\'':
			s.pos += 2
		case c == '\'':
			s.pos++
			if keeps && s.continues() {
				s.pos++
				continue
			}
			s.emit(Text, start)
			return nil
		case c != '\\' || !escapes && !ambiguous:
			s.pos++
		default:
			if err := s.backslash(escapes); err != nil {
				return err
			}
		}
	}
	return &Error{start, "a string is never closed", Rejected}
}

// toQuote moves to the next quote or backslash, and reports whether there is one.
func (s *scanner) toQuote() bool {
	i := s.pos
	for i < len(s.src) && s.src[i] != '\'' && s.src[i] != '\\' {
		i++
	}
	s.pos = i
	return i < len(s.src)
}

// backslash reads a backslash in a string where it escapes, or may escape.
func (s *scanner) backslash(escapes bool) *Error {
	// The byte before may be the first of a character, and the backslash its second.
	split := s.swallowed(s.pos)
	switch next := s.at(1); {
	case escapes && split:
		return s.twoEncodings()
	case escapes:
		s.pos += 2
	case next == '\'':
		return &Error{s.pos, AmbiguousBackslash, Ambiguous}
	case next == '\\':
		// With the setting off the two are one character, and the second
		// escapes nothing; with it on neither does. Only if the first is part
		// of a character before it does the second escape what follows.
		s.pos += 2
		if split && s.at(0) == '\'' {
			return &Error{s.pos, AmbiguousBackslash, Ambiguous}
		}
	default:
		s.pos++
	}
	return nil
}

// swallowed reports whether the ASCII byte at i could be the second byte of a
// character, if the database read the text in GBK, Big5, Shift JIS or the like.
func (s *scanner) swallowed(i int) bool {
	return s.rules.Encoding != "" && i > 0 && s.src[i-1] >= 0x80
}

func (s *scanner) twoEncodings() *Error {
	return &Error{s.pos, "its meaning depends on " + s.rules.Encoding + "; pass the value as an argument, or put a " +
		"blank or quotes before this byte", Unread}
}

// continues moves to the quote that continues the string just closed: one that
// follows after blanks with a newline among them. It matters where a quote by itself
// would begin a string that reads otherwise.
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
