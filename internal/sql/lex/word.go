package lex

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// word reads a name or keyword, or the string that its letters introduce.
func (s *scanner) word() *Error {
	start, i, all := s.pos, s.pos, byte(0)
	for ; i < len(s.src) && namePart[s.src[i]]; i++ {
		all |= s.src[i]
	}
	s.pos = i
	if all >= utf8.RuneSelf {
		if err := s.blankInWord(start); err != nil {
			return err
		}
		if s.rules.DigitNames.Is() && strings.IndexByte(s.src[start:i], 0xA0) >= 0 {
			return s.twoEncodings()
		}
		if i < len(s.src) && (s.escapes.pair(s.src[i-1], s.src[i]) || s.swallowed(i)) {
			return s.twoEncodings()
		}
		if err := s.isName(start); err != nil {
			return err
		}
	}
	if i == start+1 && i < len(s.src) && (s.src[i] == '\'' || s.src[i] == '&') {
		if read, err := s.introducedString(start); read {
			return err
		}
	}
	label := false
	if n := len(s.toks); n > 0 {
		switch before := &s.toks[n-1]; before.Kind {
		case Number:
			if int(before.End) == start && !s.endsNumber(before, start, i) {
				s.fail(start, "a word right behind a number is a part of it to some servers; put a blank between them")
			}
		case Punct:
			label = before.Char == '.'
		case Word:
			label = before.Char == 'a' && !before.Label && EqualFold(s.src[before.Start:before.End], "as")
		case Quoted:
			escaped := s.rules.UnicodeEscapes.Is() && s.src[before.Start]|0x20 == 'u'
			if escaped && strings.EqualFold(s.src[start:i], "uescape") {
				return &Error{int(before.Start), "a name spelled with UESCAPE isn't supported; write it in " +
					"double quotes", Unread}
			}
		}
	}
	s.intricate = int32(len(s.toks))
	*s.add() = Token{Kind: Word, Char: lowerByte(s.src[start]), Label: label, Start: int32(start), End: int32(i)}
	return nil
}

// endsNumber reports whether every server reads the word from start to end, right after digits, as the rest of a
// number: 1e5, 1e-5, 0x1F or 1_000. (For MySQL, numberEnd has read the whole number.) Some servers read any other word,
// as in 4WHERE or 4e0WHERE, as a separate word, and the other servers reject the text.
func (s *scanner) endsNumber(digits *Token, start, end int) bool {
	if s.rules.DigitNames.Is() {
		return false
	}
	word, exponent := s.src[start:end], ""
	if s.src[digits.Start:digits.End] == "0" && strings.IndexByte("xob", word[0]|0x20) >= 0 {
		return len(word) > 1 && strings.Trim(word[1:], "0123456789abcdefABCDEF_") == ""
	}
	if e := strings.IndexAny(word, "eE"); e >= 0 {
		word, exponent = word[:e], word[e+1:]
		if exponent == "" && s.at(0) != '+' && s.at(0) != '-' {
			return false
		}
	}
	return (word == "" || word[0] == '_') && strings.Trim(word, "0123456789_") == "" &&
		strings.Trim(exponent, "0123456789_") == ""
}

// introducedString reads the string or name that the letter at start introduces, if the letter introduces one.
func (s *scanner) introducedString(start int) (read bool, err *Error) {
	if s.src[s.pos] == '\'' {
		if kind, ok := s.rules.introduced(s.src[start] | 0x20); ok {
			return true, s.str(start, kind)
		}
		return false, nil
	}
	if s.rules.UnicodeEscapes.Is() && s.src[start]|0x20 == 'u' && (s.at(1) == '\'' || s.at(1) == '"') {
		return true, s.unicodeEscaped(start)
	}
	return false, nil
}

// introduced returns the kind of string that a letter before the quote introduces.
func (r *Rules) introduced(letter byte) (kind stringKind, ok bool) {
	switch {
	case strings.IndexByte(r.RawStrings, letter) >= 0:
		return rawString, true
	case strings.IndexByte(r.PlainStrings, letter) >= 0:
		return plainString, true
	case strings.IndexByte(r.EscapeStrings, letter) >= 0:
		return escapeString, true
	}
	return 0, false
}

// unicodeEscaped reads a string or name with the prefix U&. The U is at start, the & is the current byte.
func (s *scanner) unicodeEscaped(start int) *Error {
	s.pos++
	if s.at(0) == '"' {
		return s.quotedName(start, '"', true)
	}
	if s.escapes.Mode() == EscapesAll {
		return &Error{start, "a string with Unicode escapes needs standard_conforming_strings", Rejected}
	}
	return s.str(start, rawString)
}

// quotedName reads a quoted name up to close; doubled, close stands for itself.
func (s *scanner) quotedName(start int, close byte, doubles bool) *Error {
	s.pos++
	for s.pos < len(s.src) {
		if s.src[s.pos] != close {
			s.pos += s.width(s.pos)
			continue
		}
		if close == '`' && s.swallowed(s.pos) {
			return s.twoEncodings()
		}
		s.pos++
		if doubles && s.at(0) == close {
			s.pos++
			continue
		}
		s.intricate = int32(len(s.toks))
		s.emit(Quoted, start)
		return s.isName(start)
	}
	return &Error{start, "a quoted name is never closed", Rejected}
}

// blankInWord refuses Unicode blanks in the word that began at start. SQLite reads the blank as part of the name;
// mattn's driver trims blanks at both ends of the text after the first statement, and so changes the name.
func (s *scanner) blankInWord(start int) *Error {
	if !s.rules.NoBlankInWords.Is() {
		return nil
	}
	for i := start; i < s.pos; i++ {
		if s.src[i] < utf8.RuneSelf {
			continue
		}
		if r, _ := utf8.DecodeRuneInString(s.src[i:]); unicode.IsSpace(r) {
			return &Error{i, fmt.Sprintf("the blank %U is outside of quotes, where drivers may cut it off a name; "+
				"write a plain blank, or put the name in quotes", r), Unread}
		}
	}
	return nil
}

// Letters returns the ASCII letters that s begins with.
func Letters(s string) string {
	end := 0
	for end < len(s) && s[end]|0x20 >= 'a' && s[end]|0x20 <= 'z' {
		end++
	}
	return s[:end]
}

// IsSpace reports whether c is blank space.
func IsSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// IsDigit reports whether c is a decimal digit.
func IsDigit(c byte) bool { return c >= '0' && c <= '9' }

// IsNameStart holds for bytes that begin a name or keyword.
func IsNameStart(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c >= 0x80
}

// IsNamePart holds for bytes that continue a name.
func IsNamePart(c byte) bool { return namePart[c] }

var namePart = func() (part [256]bool) {
	for c := range part {
		part[c] = IsNameStart(byte(c)) || IsDigit(byte(c)) || c == '$'
	}
	return part
}()
