package mysql

import (
	"github.com/sqlfence/sqlfence/internal/fact"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

// Lex is how MySQL and MariaDB read, whatever sql_mode and character_set_client are: a
// text that reads otherwise under one of them is an error. So is one that the two, or
// their versions, read differently.
//
//   - A backslash escapes a quote, unless sql_mode has NO_BACKSLASH_ESCAPES. Where it stands
//     before one, a string ends at two places.
//   - "..." is a string or, with ANSI_QUOTES, a name. It has the same end; it is a [lex.Text] that
//     may be a name.
//   - What /*!, /*M! and TiDB's /*T! begin is code for some servers or versions, and a comment for the others.
//   - $ begins a name, or in MySQL 9 a string; [ a name with MSSQL; \N is NULL in MariaDB.
//   - In GBK, Big5, Shift JIS and the like a backslash may be the second byte of a character,
//     and 0xA0 is a blank in single-byte encodings. A backquote may be that, too: so that names
//     in other languages can be quoted, a connection with such an encoding is left to who opens it.
//
// A setting that changes how operators bind, such as PIPES_AS_CONCAT, changes no token.
//
// Names are folded as by lower_case_table_names = 1, quoted or not, so that a table is
// found in whatever case it is written.
//
// Source: sql/sql_lex.cc of both, and strings/ctype*.c; MySQL's sql_lex_hints.cc.
var Lex = lex.NewRules(lex.Rules{
	LineEnds:       "\n",
	NestedComments: fact.No,
	OpenComments:   fact.No,
	HashComments:   fact.Yes,
	ByteOrderMark:  fact.No,

	RawStrings:        "bx",
	PlainStrings:      "n",
	UnicodeEscapes:    fact.No,
	ConformingStrings: fact.No,
	Continued:         fact.No,
	DollarQuotes:      fact.No,
	TwoModes:          fact.Yes,
	Encoding:          "character_set_client",

	Backquotes:     fact.Yes,
	Brackets:       fact.No,
	TextNames:      fact.No,
	NoBlankInWords: fact.No,
	LocaleFolds:    fact.Yes,
	FoldsQuoted:    fact.Yes,
	DigitNames:     fact.Yes,
	Catalogs:       fact.No,

	Variables:     fact.No,
	QuestionMarks: fact.Yes,
})
