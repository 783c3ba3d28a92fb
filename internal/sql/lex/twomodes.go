package lex

import "strings"

// The reasons for errors that depend on sql_mode or the server's version.
const (
	// AmbiguousQuote is for a string.
	AmbiguousQuote = `a backslash before a quote is ambiguous: its meaning depends on NO_BACKSLASH_ESCAPES in ` +
		`sql_mode; pass the value as an argument, or double the quote`
	executable = `what is in /*! */, /*M! */ and /*T! */ is code or a comment, depending on the server and ` +
		`its version; write it without`
	inDirective = `a comment that begins so has instructions for a proxy, which may apply the statement in part; ` +
		`leave it out`
	quotesInHint = `a quote in an optimizer hint may hide the hint's end; leave it out`
	tidbInHint   = `an optimizer hint that sets a variable of TiDB's may change how the statement ` +
		`is applied; leave it out`
	clockInHint = `an optimizer hint that sets timestamp gives the statement another time, and locks of rows ` +
		`would expire by that; leave it out`
	strangeByte     = `its meaning depends on the server's version or sql_mode; put names in backquotes`
	dotAfterQuotes  = `a dot and a digit behind quotes may be a number or a name; put the name in backquotes`
	strangeVariable = `the name of this variable can't be read; put it in backquotes`
)

// dashes reports whether the next -- begins a comment. Some servers require a blank or a control character after the
// --.
func (s *scanner) dashes() (comment bool, err *Error) {
	c := s.at(2)
	switch {
	case !s.rules.HashComments.Is():
		return true, nil
	case c >= 0x80:
		return false, s.twoEncodings()
	}
	return c <= ' ' || c == 0x7F, nil
}

// codeComment refuses a comment that some servers execute, and a hint that some servers may end elsewhere.
func (s *scanner) codeComment() *Error {
	switch c := s.at(2); {
	case c == '!' || (c|0x20 == 'm' || c|0x20 == 't') && s.at(3) == '!':
		return &Error{s.pos, executable, Conditional}
	case s.rules.Directive != "" && strings.HasPrefix(s.src[s.pos+2:], s.rules.Directive):
		return &Error{s.pos, inDirective, Unread}
	case c == '+':
		hint, _, closed := strings.Cut(s.src[s.pos:], "*/")
		switch {
		case !closed:
		case strings.ContainsAny(hint, "'\"`"):
			return &Error{s.pos, quotesInHint, Unread}
		case sets(hint, "timestamp"):
			return &Error{s.pos, clockInHint, Unread}
		case sets(hint, "tidb_"):
			return &Error{s.pos, tidbInHint, Unread}
		}
	}
	return nil
}

// sets reports whether a hint may set, for its statement, a variable with this string in its name, as SET_VAR(timestamp
// = x) does.
func sets(hint, variable string) bool {
	hint = strings.ToLower(hint)
	return strings.Contains(hint, "set_var") && strings.Contains(hint, variable)
}

// digitWord reads a number, or a name that begins with a digit, such as 1books. Right after the dot of a qualified name
// the word is always a name.
func (s *scanner) digitWord() *Error {
	start := s.pos
	if n := len(s.toks); n > 0 && s.toks[n-1].Is('.') && int(s.toks[n-1].End) == start {
		return s.word()
	}
	end := s.numberEnd()
	if end < 0 {
		return s.word()
	}
	s.pos = end
	s.emit(Number, start)
	return nil
}

// numberEnd returns the end of the number that begins with a digit or a dot here; -1 for a name.
func (s *scanner) numberEnd() int {
	src, i := s.src, s.pos
	if src[i] == '0' && (s.at(1) == 'x' || s.at(1) == 'b') {
		digits := "01"
		if s.at(1) == 'x' {
			digits = "0123456789abcdefABCDEF"
		}
		end := i + 2
		for end < len(src) && strings.IndexByte(digits, src[end]) >= 0 {
			end++
		}
		if end == i+2 || end < len(src) && IsNamePart(src[end]) {
			return -1
		}
		return end
	}
	digits := func() {
		for i < len(src) && IsDigit(src[i]) {
			i++
		}
	}
	digits()
	real := i < len(src) && src[i] == '.'
	if real {
		i++
		digits()
	}
	if i < len(src) && src[i]|0x20 == 'e' {
		digit := i + 1
		if digit < len(src) && (src[digit] == '+' || src[digit] == '-') {
			digit++
		}
		if digit < len(src) && IsDigit(src[digit]) {
			i = digit
			digits()
			return i
		}
	}
	if !real && i < len(src) && IsNamePart(src[i]) {
		return -1
	}
	return i
}

// dotDigit reads a dot before a digit. Right after a word the dot separates the parts of a name; otherwise the dot
// begins a number.
func (s *scanner) dotDigit() *Error {
	start := s.pos
	if n := len(s.toks); n > 0 && int(s.toks[n-1].End) == start {
		switch s.toks[n-1].Kind {
		case Word:
			s.single()
			return nil
		case Quoted, Text, Variable:
			return &Error{start, dotAfterQuotes, Unread}
		}
	}
	s.pos = s.numberEnd()
	s.emit(Number, start)
	return nil
}

// atVariable reads @name, @'name', @`name`, @@name or the dot-joined parts of the first.
func (s *scanner) atVariable() *Error {
	start, token := s.pos, len(s.toks)
	s.intricate = int32(token)
	s.pos++
	system := s.at(0) == '@'
	if system {
		s.pos++
	}
	switch c := s.at(0); {
	case c == '`':
		if err := s.quotedName(start, c, true); err != nil {
			return err
		}
		s.toks[token].Kind = Variable
		return nil
	case !system && (c == '\'' || c == '"'):
		if err := s.str(start, plainString); err != nil {
			return err
		}
		s.toks[token].Kind = Variable
		return nil
	}
	name := s.pos
	for s.pos < len(s.src) && s.src[s.pos] < 0x80 && (IsNamePart(s.src[s.pos]) || s.src[s.pos] == '.' && !system) {
		s.pos++
	}
	if s.pos == name || s.at(0) >= 0x80 {
		return &Error{start, strangeVariable, Unread}
	}
	s.emit(Variable, start)
	return nil
}

// questionMark reads a placeholder. A question mark directly before a name character is an error.
func (s *scanner) questionMark() *Error {
	start := s.pos
	if IsNamePart(s.at(1)) {
		return &Error{start, `unexpected "?"`, Rejected}
	}
	s.pos++
	s.emit(Param, start)
	return nil
}
