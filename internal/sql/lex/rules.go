package lex

import (
	"strings"

	"github.com/sqlfence/sqlfence/internal/fact"
)

// Rules describe how a database reads a text. They are immutable and safe for concurrent use.
type Rules struct {
	// Blanks and comments.
	LineEnds       string // what ends a comment that began with --
	NestedComments fact.Fact
	OpenComments   fact.Fact // the end of the text may end a comment in /*
	HashComments   fact.Fact // # begins a comment; -- begins one only before a blank
	ByteOrderMark  fact.Fact // a byte order mark is blank space before any token

	// Strings. Letters are prefixes of a string, in either case, as in x'1F'.
	RawStrings        string    // letters of strings in which a backslash is an ordinary character
	PlainStrings      string    // letters that don't change the string
	EscapeStrings     string    // letters of strings in which a backslash escapes the next byte
	UnicodeEscapes    fact.Fact // U&'' and U&""
	ConformingStrings fact.Fact // standard_conforming_strings decides about backslashes in strings without a letter
	Continued         fact.Fact // a string continues in the next quotes, after a newline
	DollarQuotes      fact.Fact // $$...$$ and $tag$...$tag$, and $1 is a placeholder
	TwoModes          fact.Fact // a setting or the version decides about backslashes, "..." as a name, and code in /*!
	Directive         string    // how a comment with instructions for a proxy begins, after the /*
	Encoding          string    // the setting that can make the server read the text in an encoding other than UTF-8

	// Names.
	Backquotes     fact.Fact // `name`
	Brackets       fact.Fact // [name]
	TextNames      fact.Fact // a string is a name if a name must stand in its place
	NoBlankInWords fact.Fact // words with blank space beyond ASCII are refused
	LocaleFolds    fact.Fact // letters beyond ASCII may be folded
	FoldsQuoted    fact.Fact // quoted names are folded like other names
	DigitNames     fact.Fact // a name may begin with a digit
	Catalogs       fact.Fact // the name of a database may precede the schema's name
	Targets        fact.Fact // a shard and a type may follow the schema's name inside its quotes: "schema:shard@type"
	MaxName        int       // maximum number of bytes of a name; further bytes are ignored; 0 means no maximum

	Variables     fact.Fact // ?, ?1, :a, @a, $a and #a are placeholders
	QuestionMarks fact.Fact // ? is a placeholder, and @a and @@a are variables

	classes [256]byteClass // computed from the fields above
}

// NewRules returns the rules with their classes.
func NewRules(r Rules) *Rules {
	for c := range r.classes {
		r.classes[c] = classOf(byte(c))
	}
	if r.DollarQuotes.Is() {
		r.classes['$'] = paramByte
	}
	if r.Variables.Is() || r.QuestionMarks.Is() {
		r.classes['?'] = paramByte
	}
	if r.DigitNames.Is() {
		for c := '0'; c <= '9'; c++ {
			r.classes[c] = otherByte
		}
	}
	if r.ByteOrderMark.Is() {
		r.classes[firstOfMark] = otherByte
	}
	return &r
}

// A byteClass is the kind of token that a byte begins.
type byteClass uint8

const (
	otherByte byteClass = iota // the kind depends on the next bytes, or on the database
	blankByte
	nameByte
	digitByte
	quoteByte
	paramByte // a placeholder, if a digit follows
	bracketByte
	singleByte // a token by itself
)

// classOf returns the class that a byte has in every database, except the byte order mark.
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

// Escapes tells how the session's settings affect string constants: in which constants a backslash escapes the next
// byte, and which encoding applies. Constants with a prefix letter that decides about escapes don't depend on the
// settings. In an encoding other than GBK, Big5 and SJIS no ASCII byte is part of another character.
type Escapes uint8

const (
	// EscapesUnknown: a text is an error if the settings change how the text is split into tokens.
	EscapesUnknown Escapes = iota
	// EscapesNone: in none, as by standard_conforming_strings or NO_BACKSLASH_ESCAPES.
	EscapesNone
	// EscapesAll: in all of them.
	EscapesAll
	// EscapesInText: in those in apostrophes, as by ANSI_QUOTES.
	EscapesInText

	// GBK, Big5 or SJIS is added to one of the above if the session's encoding has characters of two bytes as these
	// encodings have them, and AnyEncoding if the session's encoding is unknown.
	GBK         Escapes = 1 << 2
	Big5        Escapes = 2 << 2
	SJIS        Escapes = 3 << 2
	AnyEncoding Escapes = 4 << 2

	EscapesBits = 5 // the number of bits that an Escapes has

	modes = GBK - 1
)

// Mode is without the encoding.
func (e Escapes) Mode() Escapes { return e & modes }

// Splits reports whether a byte of ASCII may be a part of another character.
func (e Escapes) Splits() bool { return e&^modes != 0 }

// pair reports whether two bytes are one character in an encoding in which characters may end with a byte of ASCII.
func (e Escapes) pair(first, second byte) bool {
	switch e &^ modes {
	case GBK: // and GB18030, in which characters of four bytes have no other byte of ASCII than digits
		return first >= 0x81 && first <= 0xFE && second >= 0x40 && second != 0x7F && second <= 0xFE
	case Big5:
		return first >= 0xA1 && first <= 0xF9 && (second >= 0x40 && second <= 0x7E || second >= 0xA1 && second <= 0xFE)
	case SJIS:
		return (first >= 0x81 && first <= 0x9F || first >= 0xE0 && first <= 0xFC) &&
			second >= 0x40 && second != 0x7F && second <= 0xFC
	}
	return false
}

// AmbiguousBackslash is the reason of an [Ambiguous] error.
const AmbiguousBackslash = "`\\'` is ambiguous: its meaning depends on standard_conforming_strings; pass the " +
	"value as an argument or write E'…'"

// NeedsSCSOn reports whether the database surely refuses the text with standard_conforming_strings off, as it refuses
// 'C:\', which then has no closing quote. If so, the text can only mean what it means with the setting on.
func (r *Rules) NeedsSCSOn(src string) bool {
	_, err := Scan(r, src, EscapesAll|AnyEncoding, nil)
	return err != nil && err.Kind == Rejected
}
