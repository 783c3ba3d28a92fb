package confirm

import (
	"strings"

	"github.com/sqlfence/sqlfence/internal/fact"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

// A Dialect is what the check knows of the SQL that a database speaks.
type Dialect struct {
	// Comments and white space.
	LineEnds       string // each of these bytes ends a comment that begins with --
	NestedComments fact.Fact
	OpenComments   fact.Fact // a comment needs no end
	ByteOrderMark  fact.Fact // is white space before a token, and else part of a word
	HashComments   fact.Fact // # begins a comment, and -- needs a blank

	// Strings and quoted names. Both know '...' and "...".
	// Introduced are strings that a letter introduces, up to their quotes and in lower case; a name
	// has a double one. Escaped is that in which a backslash escapes the next character, and which
	// continues on another line; empty for none.
	Introduced   []string
	Escaped      string
	Backquotes   fact.Fact // `...` is a name
	Brackets     fact.Fact // [...] is a name
	DollarQuotes fact.Fact // $tag$...$tag$ is a string
	TwoModes     fact.Fact // by a setting a backslash may escape in a string, a comment be code, and || be OR
	DigitNames   fact.Fact // a name may begin with a digit

	// Placeholders.
	Placeholder byte      // stands before a placeholder's number
	Variables   string    // the bytes that begin a placeholder with a name
	Inlined     fact.Fact // drivers may write values into the text, see [Dialect.Inlines]

	BareAlias  fact.Fact  // a write's target may have an alias without AS
	Conditions fact.Fact  // a condition may stand behind the user's own in brackets
	Joins      fact.Fact  // an UPDATE and a DELETE may be of several tables
	Words      Words      // the dialect's own words that mean something to the check
	Names      *lex.Rules // what a name stands for

	keywords keywords // by what is above
	bytes    [256]byteKind
	pieces   [256]pieceByte
}

// NewDialect returns the dialect with what follows from its fields.
func NewDialect(d Dialect) *Dialect {
	d.keywords = newKeywords(d.Words)
	special := "-/.'\"" + d.Variables + string(rune(d.Placeholder))
	if d.Backquotes.Is() {
		special += "`"
	}
	if d.HashComments.Is() {
		special += "#"
	}
	if d.DigitNames.Is() {
		special += "0123456789"
	}
	if d.Brackets.Is() {
		special += "["
	}
	for i := range d.bytes {
		d.bytes[i] = kindOf(byte(i))
		if strings.IndexByte(special, byte(i)) >= 0 || d.ByteOrderMark.Is() && i == firstOfMark {
			d.bytes[i] = specialByte
		}
		d.pieces[i] = d.pieceByteOf(byte(i))
	}
	return &d
}
