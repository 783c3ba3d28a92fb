// Package lex splits the text of SQL statements into tokens, as a database's own scanner does, and reads and writes
// names. Each folder of internal/dialect has its database's [Rules] for the splitting, and the [Grammar] of the
// statements that the database has. A text that could be read in two ways is an error.
package lex

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Scan appends the tokens of src to buf, one of kind [End] last.
func Scan(r *Rules, src string, e Escapes, buf []Token) ([]Token, *Error) {
	s := scanner{rules: r, src: src, toks: buf, escapes: e, open: none, intricate: none}
	return s.scan()
}

// ScanPart is Scan for a part of a text, in which brackets may lack their partners. No token gets a Mate.
func ScanPart(r *Rules, src string, e Escapes, buf []Token) ([]Token, *Error) {
	s := scanner{rules: r, src: src, toks: buf, escapes: e, open: none, intricate: none, partial: true}
	return s.scan()
}

func (s *scanner) scan() ([]Token, *Error) {
	src := s.src
	if i := strings.IndexByte(src, 0); i >= 0 {
		return nil, &Error{Offset: i, Reason: "it contains a NUL byte, where drivers would cut the text"}
	}
	switch named := s.rules.TwoModes.Is(); { // the settings of a session that may use another encoding
	case named && !s.anyEncoding(), utf8.ValidString(src):
	case named:
		return nil, &Error{Offset: invalidUTF8(src), Reason: notUTF8, Kind: Ambiguous}
	default:
		return nil, &Error{Offset: invalidUTF8(src), Reason: notUTF8}
	}
	for s.pos < len(src) {
		var err *Error
		switch start := s.pos; s.rules.classes[src[start]] {
		case blankByte:
			s.pos++
		case nameByte:
			err = s.word()
		case digitByte:
			s.number()
			s.emit(Number, start)
		case singleByte:
			if s.single(); src[start] == ',' {
				s.members()
			}
		case quoteByte:
			err = s.str(start, plainString)
		case paramByte:
			err = s.param()
		case bracketByte:
			err = s.punct(src[start])
		default:
			if err = s.blank(); err == nil && s.pos == start {
				err = s.next()
			}
		}
		if err != nil {
			return nil, err
		}
	}
	if s.open != none {
		return nil, &Error{int(s.toks[s.open].Start), "a bracket is never closed", Unread}
	}
	s.emit(End, len(src))
	if s.unread.Reason != "" {
		unread := s.unread
		return nil, &unread
	}
	return s.toks, nil
}

// SkipBlank returns how many bytes of blank space and comments src begins with; ok is
// false where a comment has no end.
func (r *Rules) SkipBlank(src string) (n int, ok bool) {
	s := scanner{rules: r, src: src}
	err := s.blank()
	return s.pos, err == nil
}

// A scanner splits one text into tokens. It fails if an unknown setting decides how the database reads the text.
type scanner struct {
	rules   *Rules
	src     string
	pos     int
	toks    []Token
	escapes Escapes

	// The innermost open bracket. Its Mate is the enclosing open bracket.
	open int32

	// The last token that can't stand in a Plain bracket.
	intricate int32

	partial bool  // brackets may be without their partners
	unread  Error // the first thing that servers read in different ways, if there is one
}

// fail records a place that databases read in different ways. The scanner reads on: if it finds a fault that every
// database refuses, that fault is the error, and otherwise this place is.
func (s *scanner) fail(offset int, reason string) {
	if s.unread.Reason == "" {
		s.unread = Error{Offset: offset, Reason: reason}
	}
}

const none = -1

func (s *scanner) emit(k Kind, start int) {
	*s.add() = Token{Kind: k, Start: int32(start), End: int32(s.pos)}
}

// add adds a token, to be set.
func (s *scanner) add() *Token {
	n := len(s.toks)
	if n == cap(s.toks) {
		s.toks = More(s.toks, n, s.pos, len(s.src))
	}
	s.toks = s.toks[:n+1]
	return &s.toks[n]
}

// at returns the byte i places ahead, or 0 past the end.
func (s *scanner) at(i int) byte {
	if s.pos+i < len(s.src) {
		return s.src[s.pos+i]
	}
	return 0
}

// blank skips white space and comments.
func (s *scanner) blank() *Error {
	for s.pos < len(s.src) {
		switch c := s.src[s.pos]; {
		case IsSpace(c):
			s.pos++
		case c == '-' && s.at(1) == '-':
			if comment, err := s.dashes(); err != nil || !comment {
				return err
			}
			s.lineComment()
		case c == '#' && s.rules.HashComments.Is():
			s.lineComment()
		case c == '/' && s.at(1) == '*':
			if err := s.blockComment(); err != nil {
				return err
			}
		case c == firstOfMark && s.rules.ByteOrderMark.Is() && strings.HasPrefix(s.src[s.pos:], "\uFEFF"):
			if n := len(s.toks); n > 0 && s.toks[n-1].Kind == Number && int(s.toks[n-1].End) == s.pos {
				s.fail(s.pos, "SQLite takes a byte order mark right behind a number for a part of it; put a blank "+
					"between them")
			}
			s.pos += 3
		default:
			return nil
		}
	}
	return nil
}

func (s *scanner) lineComment() {
	stop := strings.IndexAny(s.src[s.pos:], s.rules.LineEnds)
	if stop < 0 {
		stop = len(s.src) - s.pos
	}
	s.pos += stop
}

// blockComment skips a comment in /* and */, which begins here.
func (s *scanner) blockComment() *Error {
	if s.rules.TwoModes.Is() {
		if err := s.codeComment(); err != nil {
			return err
		}
	}
	start, depth := s.pos, 1
	s.pos += 2
	for s.pos < len(s.src) {
		switch c := s.src[s.pos]; {
		case c == '*' && s.at(1) == '/':
			s.pos += 2
			if depth--; depth == 0 {
				return nil
			}
		case c == '/' && s.at(1) == '*' && s.rules.NestedComments.Is():
			depth++
			s.pos += 2
		default:
			s.pos++
		}
	}
	if s.rules.OpenComments.Is() {
		return nil
	}
	return &Error{start, "a comment is never closed", Rejected}
}

// next reads one token if the class of the first byte doesn't determine the token's kind.
func (s *scanner) next() *Error {
	start := s.pos
	switch c := s.src[s.pos]; {
	case c == '.' && IsDigit(s.at(1)) && s.rules.DigitNames.Is():
		return s.dotDigit()
	case IsDigit(c):
		return s.digitWord()
	case c == '"' && s.rules.TwoModes.Is():
		return s.str(start, plainString)
	case c == '@' && s.rules.QuestionMarks.Is():
		return s.atVariable()
	case s.rules.TwoModes.Is() && strings.IndexByte(`$[]\`, c) >= 0:
		return &Error{start, strangeByte, Unread}
	case c == '.' && IsDigit(s.at(1)):
		s.number()
		s.emit(Number, start)
	case IsNameStart(c):
		return s.word()
	case c == '"', c == '`' && s.rules.Backquotes.Is():
		return s.quotedName(start, c, true)
	case c == '[' && s.rules.Brackets.Is():
		return s.quotedName(start, ']', false)
	case s.rules.Variables.Is() && (c == ':' || c == '@' || c == '$' || c == '#'):
		return s.variable()
	default:
		return s.punct(c)
	}
	return nil
}

// param reads a placeholder that is numbered; or a dollar quote, or a placeholder without
// a number.
func (s *scanner) param() *Error {
	start := s.pos
	if s.rules.QuestionMarks.Is() {
		return s.questionMark()
	}
	if !IsDigit(s.at(1)) && s.rules.DollarQuotes.Is() {
		return s.dollar()
	}
	s.pos++
	s.digits()
	s.emit(Param, start)
	return nil
}

// number reads digits and dots. The rest of a number such as 1e5, 0x1F or 1_000 becomes a separate word: databases
// differ in how they read the rest, and no caller depends on the rest.
func (s *scanner) number() {
	// Two dots are a range of PL/pgSQL; they end a number.
	i := s.pos
	for ; i < len(s.src); i++ {
		if c := s.src[i]; !IsDigit(c) && (c != '.' || i+1 < len(s.src) && s.src[i+1] == '.') {
			break
		}
	}
	s.pos = i
}

func (s *scanner) digits() {
	i := s.pos
	for i < len(s.src) && IsDigit(s.src[i]) {
		i++
	}
	s.pos = i
}

// variable reads a named placeholder, with Tcl's :: and (suffix).
func (s *scanner) variable() *Error {
	start, named := s.pos, false
	s.pos++
scan:
	for s.pos < len(s.src) {
		switch c := s.src[s.pos]; {
		case IsNamePart(c):
			named = true
			s.pos++
		case c == '(' && named:
			close := strings.IndexAny(s.src[s.pos+1:], ") \t\n\v\f\r")
			if close < 0 || s.src[s.pos+1+close] != ')' {
				return &Error{start, "a placeholder's suffix is never closed", Unread}
			}
			s.pos += close + 2
			break scan
		case c == ':' && s.at(1) == ':':
			s.pos += 2
		default:
			break scan
		}
	}
	if !named {
		return &Error{start, fmt.Sprintf("unexpected %q", s.src[start]), Unread}
	}
	if err := s.blankInWord(start); err != nil {
		return err
	}
	s.emit(Param, start)
	return nil
}

// dollar reads $tag$...$tag$.
func (s *scanner) dollar() *Error {
	start := s.pos
	s.pos++
	for s.pos < len(s.src) && IsNamePart(s.src[s.pos]) && s.src[s.pos] != '$' {
		s.pos++
	}
	if s.at(0) != '$' {
		return &Error{start, `unexpected "$"`, Unread}
	}
	s.pos++
	tag := s.src[start:s.pos]
	close := strings.Index(s.src[s.pos:], tag)
	if close < 0 {
		return &Error{start, "a dollar-quoted string is never closed", Rejected}
	}
	s.pos += close + len(tag)
	s.emit(Text, start)
	return nil
}

// single reads a byte that always forms a token alone.
func (s *scanner) single() {
	c, start := s.src[s.pos], int32(s.pos)
	s.pos++
	if c != ',' {
		s.intricate = int32(len(s.toks))
	}
	*s.add() = Token{Kind: Punct, Char: c, Start: start, End: start + 1}
}

// members is a shortcut for long lists: it reads members that consist of digits, or of a placeholder with its number,
// each with the comma after the member, and stops at any other token.
func (s *scanner) members() {
	src, toks := s.src, s.toks
	for len(toks)+2 <= cap(toks) {
		i := s.pos
		for i < len(src) && src[i] == ' ' {
			i++
		}
		member := Token{Kind: Number, Start: int32(i)}
		if i < len(src) && s.rules.classes[src[i]] == paramByte {
			member.Kind = Param
			i++
		}
		digits := i
		for ; i < len(src) && IsDigit(src[i]); i++ {
			member.Mate = 10*member.Mate + int32(src[i]-'0')
		}
		switch n := i - digits; {
		case i == len(src) || src[i] != ',' || n >= maxDigits:
			return
		case member.Kind == Number:
			member.Mate = 0
			if n == 0 {
				return
			}
		case n == 0 && s.rules.DollarQuotes.Is(), n > 0 && s.rules.QuestionMarks.Is():
			return
		}
		member.End = int32(i)
		toks = append(toks, member, Token{Kind: Punct, Char: ',', Start: int32(i), End: int32(i + 1)})
		s.toks, s.pos = toks, i+1
	}
}

// maxDigits is how many digits are too many for an int32.
const maxDigits = 10

// punct reads one byte and pairs the brackets.
func (s *scanner) punct(c byte) *Error {
	start, here := s.pos, int32(len(s.toks))
	if c == '\\' && s.escapes.Mode() == EscapesAll {
		return &Error{start, "a backslash is outside of a string", Rejected}
	}
	plain := s.intricate == s.open
	s.single()
	switch {
	case s.partial:
	case c == '(' || c == '[':
		s.toks[here].Mate, s.open = s.open, here
	case c == ')' || c == ']':
		mate := s.open
		if mate == none || (s.toks[mate].Char == '(') != (c == ')') {
			return &Error{start, "a closing bracket has no opening one", Unread}
		}
		s.open = s.toks[mate].Mate
		s.toks[here].Mate, s.toks[mate].Mate = mate, here
		s.toks[mate].Plain = plain
	}
	return nil
}

const notUTF8 = "it is not valid UTF-8"

// isName refuses a name, from start on, that isn't valid UTF-8, because tables are registered in UTF-8.
func (s *scanner) isName(start int) *Error {
	if name := s.src[start:s.pos]; s.rules.TwoModes.Is() && !utf8.ValidString(name) {
		return &Error{start + invalidUTF8(name), "a name is not valid UTF-8", Unread}
	}
	return nil
}

func invalidUTF8(s string) int {
	for i, r := range s {
		if r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)) {
			return i
		}
	}
	return 0
}
