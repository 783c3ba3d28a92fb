package confirm

import (
	"strings"

	"github.com/sqlfence/sqlfence/rewrite/internal/lex"
)

// A Dialect is what the check knows of the SQL that a database speaks.
type Dialect struct {
	// Comments and white space.
	lineEnds       string // the bytes of which one ends a comment that begins with --
	nestedComments bool
	openComments   bool // a comment needs no end
	byteOrderMark  bool // is white space before a token, and else part of a word
	blankComments  bool // -- begins a comment only before a blank, # begins one, and /*! can't be read

	// Strings and quoted names. Both know '...' and "...".
	introduced   []introduced // strings and names that a letter introduces
	backquotes   bool         // `...` is a name
	brackets     bool         // [...] is a name
	dollarQuotes bool         // $tag$...$tag$ is a string
	twoModes     bool         // a backslash may escape a quote, and "..." be a string
	digitNames   bool         // a name may begin with digits

	// Placeholders.
	placeholder byte   // stands before a placeholder's number
	variables   string // the bytes that begin a placeholder, or a variable, with a name
	suffixes    bool   // the name may go on with :: and brackets
	inlined     bool   // drivers may write values into the text, see [Dialect.Inlines]

	bareAlias   bool       // a write's target may have an alias without AS
	onDuplicate bool       // INSERT has SET, and ON DUPLICATE KEY UPDATE with VALUES(column)
	keywords    keywords   // words that mean something to the check
	names       *lex.Rules // what a name stands for

	bytes [256]byteKind // by what is above
}

// All returns the dialects, for tests that walk through them.
func All() []*Dialect { return []*Dialect{Postgres, SQLite, MySQL} }

func newDialect(d Dialect) *Dialect {
	special := "-/.'\"" + d.variables + string(rune(d.placeholder))
	if d.backquotes {
		special += "`"
	}
	if d.brackets {
		special += "["
	}
	if d.blankComments {
		special += "#"
	}
	for i := range d.bytes {
		d.bytes[i] = kindOf(byte(i))
		if strings.IndexByte(special, byte(i)) >= 0 || d.byteOrderMark && i == firstOfMark {
			d.bytes[i] = specialByte
		}
	}
	return &d
}

// An introduced string or name begins with a letter.
type introduced struct {
	start   string // up to its quote, in lower case
	sign    sign
	escapes bool // a backslash escapes the next character, and the string continues on another line
}
