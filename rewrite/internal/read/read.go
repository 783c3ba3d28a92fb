package read

import "github.com/sqlfence/sqlfence/rewrite/internal/lex"

// A Text is a text of statements, which are read one by one. It is not safe for
// concurrent use.
type Text struct {
	Src    string
	Tokens []lex.Token // a token of kind End last

	// NeedsSCSOn tells that PostgreSQL refuses the text unless
	// standard_conforming_strings is on; it was read as if it were.
	NeedsSCSOn bool

	Statement
}
