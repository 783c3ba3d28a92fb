package lex

import "slices"

// Kind is the kind of a token.
type Kind uint8

// The kinds of token.
const (
	Word   Kind = iota + 1 // unquoted name or keyword
	Quoted                 // quoted name, quotes included
	Text                   // string constant, quotes and prefix included
	Number
	Param    // placeholder
	Punct    // one byte: brackets, comma, semicolon, dot, or any operator character
	Variable // MySQL's @a and @@a
	End      // after the last byte
)

// A Token is a word, name, variable, constant, placeholder or punctuation byte of a statement. Blanks and comments are
// between tokens, never inside a token.
type Token struct {
	Kind       Kind
	Char       byte  // for a Punct the byte; for a Word its first byte, a letter in lower case
	Label      bool  // for a Word: a dot or AS precedes it, so that any word is a name
	Plain      bool  // for an opening bracket: the bracket contains only constants, placeholders and commas
	Start, End int32 // in bytes from the text's start
	Mate       int32 // for a bracket the index of its partner; for a placeholder its number
}

// Is reports whether t is the punctuation c.
func (t *Token) Is(c byte) bool { return t.Kind == Punct && t.Char == c }

// IsWord reports whether t, of this text, is one of the words, unquoted, in any case.
func (t *Token) IsWord(src string, words ...string) bool {
	if t.Kind != Word {
		return false
	}
	s := src[t.Start:t.End]
	for _, w := range words {
		if len(w) == len(s) && w[0] == t.Char && EqualFold(s, w) {
			return true
		}
	}
	return false
}

// An Error is a place where a text can't be read, and the reason.
type Error struct {
	Offset int // in bytes
	Reason string
	Kind   ErrorKind
}

func (e *Error) Error() string { return e.Reason }

// An ErrorKind is the kind of an Error: what the error means for the caller.
type ErrorKind uint8

const (
	// Unread: nothing more.
	Unread ErrorKind = iota
	// Rejected: the database refuses the text, too.
	Rejected
	// Ambiguous: where a string ends depends on the session's settings.
	Ambiguous
	// Conditional: some servers execute the comment at Offset, and other servers skip the comment.
	Conditional
)

// More makes room for more elements in a full slice. Of all bytes or tokens of the input the first done had n elements:
// More makes room for the rest at the same density. A slice that grows by a factor takes several times the final room.
func More[T any](s []T, n, done, all int) []T {
	const factor = 64 // at most, as the beginning may be unlike the rest
	rest := int64(n) * int64(all-done) / int64(done+1)
	return slices.Grow(s, 8+int(min(rest+rest/16, int64(factor*n))))
}
