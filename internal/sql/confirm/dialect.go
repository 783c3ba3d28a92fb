package confirm

import (
	"strings"

	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

// A Dialect is what the check knows of the SQL that a database speaks.
type Dialect struct {
	// Comments and white space.
	lineEnds       string // each of these bytes ends a comment that begins with --
	nestedComments bool
	openComments   bool // a comment needs no end
	byteOrderMark  bool // is white space before a token, and else part of a word
	hashComments   bool // # begins a comment, and -- needs a blank
	codeComments   bool // a comment may be code

	// Strings and quoted names. Both know '...' and "...".
	introduced   []introduced // strings and names that a letter introduces
	backquotes   bool         // `...` is a name
	brackets     bool         // [...] is a name
	dollarQuotes bool         // $tag$...$tag$ is a string
	twoModes     bool         // a backslash may escape in a string
	digitNames   bool         // a name may begin with a digit

	// Placeholders.
	placeholder byte   // stands before a placeholder's number
	variables   string // the bytes that begin a placeholder with a name
	inlined     bool   // drivers may write values into the text, see [Dialect.Inlines]

	bareAlias  bool       // a write's target may have an alias without AS
	conditions bool       // a condition may stand behind the user's own in brackets
	joins      bool       // an UPDATE and a DELETE may be of several tables
	pipes      bool       // || may be OR
	keywords   keywords   // words that mean something to the check
	names      *lex.Rules // what a name stands for

	bytes [256]byteKind // by what is above
}

// All returns the dialects, for tests that walk through them.
func All() []*Dialect { return []*Dialect{Postgres, SQLite, MySQL} }

func newDialect(d Dialect) *Dialect {
	special := "-/.'\"" + d.variables + string(rune(d.placeholder))
	if d.backquotes {
		special += "`"
	}
	if d.hashComments {
		special += "#"
	}
	if d.digitNames {
		special += "0123456789"
	}
	if d.brackets {
		special += "["
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
