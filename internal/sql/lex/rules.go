package lex

import "strings"

// Rules say how a database reads a text. They are immutable and safe for concurrent
// use.
type Rules struct {
	// Blanks and comments.
	lineEnds        string // what ends a comment that began with --
	nestedComments  bool
	openComments    bool // a comment in /* may end with the text
	dashesNeedBlank bool // -- begins a comment only before a blank
	hashComments    bool // # begins a comment, too
	codeComments    bool // /*! and /*M! may hold code, and /*+ hints
	byteOrderMark   bool // it is blank space before any token

	// Strings. The letters introduce one, in either case: x'1F'.
	rawStrings     string // where a backslash is a character
	plainStrings   string // as without a letter
	escapeStrings  string // where a backslash takes the next byte with it
	unicodeEscapes bool   // U&'' and U&""
	scs            bool   // standard_conforming_strings decides the meaning of a backslash in a plain one
	continued      bool   // one goes on in quotes behind a newline
	dollarQuotes   bool   // $$...$$ and $tag$...$tag$, and $1 is a placeholder
	twoModes       bool   // whether backslashes escape, and "..." is a string or a name, depends on a setting
	encoding       string // the setting that may have the text read in another encoding than UTF-8

	// Names.
	backquotes     bool // `name`
	brackets       bool // [name]
	textNames      bool // a string is a name where a name has to stand
	noBlankInWords bool // words with blank space beyond ASCII are refused
	localeFolds    bool // letters beyond ASCII may be folded, too
	foldsQuoted    bool // and quoted names as others
	digitNames     bool // one may begin with a digit
	catalogs       bool // before the schema's may stand that of the database
	maxName        int  // how many bytes of a name count; 0 for all
	quote          func(name string) string

	variables     bool // ?, ?1, :a, @a, $a and #a are placeholders
	questionMarks bool // ? is one
	atVariables   bool // @a and @@a are variables

	classes [256]byteClass // by what is above
}

// newRules returns the rules with their classes.
func newRules(r Rules) *Rules {
	for c := range r.classes {
		r.classes[c] = classOf(byte(c))
	}
	if r.dollarQuotes {
		r.classes['$'] = paramByte
	}
	if r.variables || r.questionMarks {
		r.classes['?'] = paramByte
	}
	if r.digitNames {
		for c := '0'; c <= '9'; c++ {
			r.classes[c] = otherByte
		}
	}
	if r.byteOrderMark {
		r.classes[firstOfMark] = otherByte
	}
	return &r
}

// A byteClass says what a token is that begins with a byte.
type byteClass uint8

const (
	otherByte byteClass = iota // it depends on what follows, or on the database
	blankByte
	nameByte
	digitByte
	quoteByte
	paramByte // a placeholder, if a digit follows
	bracketByte
	singleByte // a token by itself
)

// classOf returns the class that a byte has in every database, but for the byte order
// mark.
func classOf(c byte) byteClass {
	switch {
	case IsSpace(c):
		return blankByte
	case IsNameStart(c):
		return nameByte
	case IsDigit(c):
		return digitByte
	case c == '\'':
		return quoteByte
	case c == '(' || c == ')':
		return bracketByte
	case strings.IndexByte(",;=<>+*%!~^&|{}", c) >= 0:
		return singleByte
	}
	return otherByte
}

// firstOfMark is the first byte of a byte order mark in UTF-8.
const firstOfMark = 0xEF

// An SCS is what PostgreSQL's standard_conforming_strings is taken for.
type SCS uint8

const (
	// SCSUnknown: a text that means something else with it is an error.
	SCSUnknown SCS = iota
	// SCSOn: a backslash in a plain string is a character.
	SCSOn
	// SCSOff: it escapes the next one.
	SCSOff
)

// AmbiguousBackslash is the reason of an [Ambiguous] error.
const AmbiguousBackslash = "`\\'` is ambiguous: its meaning depends on standard_conforming_strings; pass the " +
	"value as an argument or write E'…'"

// NeedsSCSOn reports whether the database surely refuses the text with
// standard_conforming_strings off. With the setting off, 'C:\' has no closing quote,
// so the server would reject the text. Only the standard reading remains.
func (r *Rules) NeedsSCSOn(src string) bool {
	_, err := Scan(r, src, SCSOff, nil)
	return err != nil && err.Fault == Rejected
}
