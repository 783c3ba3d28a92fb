package mysql

import (
	"github.com/sqlfence/sqlfence/internal/fact"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

// Lex has the lexical rules of MySQL and MariaDB under every sql_mode and character_set_client. SQL is an error if its
// tokens depend on these settings, on the database or on its version.
//
//   - A backslash escapes a quote, unless sql_mode has NO_BACKSLASH_ESCAPES. So a string with a backslash before a
//     quote has two possible ends.
//   - "..." is a string or, with ANSI_QUOTES, a name. Either way it ends at the same place. The token is a [lex.Text]
//     that may be a name.
//   - A comment after /*!, /*M! or TiDB's /*T! is code for some servers or versions.
//   - $ begins a name, or in MySQL 9 a string; [ a name if sql_mode has MSSQL; \N is NULL in MariaDB.
//   - In GBK, Big5, Shift JIS and the like a backslash or a backquote may be the second byte of a character, and 0xA0
//     is a blank in single-byte encodings. Not each such text is an error, because names in other languages need
//     backquotes. So the application must not use such an encoding.
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
	Directive:         directive,
	Encoding:          "character_set_client",

	Backquotes:     fact.Yes,
	Brackets:       fact.No,
	TextNames:      fact.No,
	NoBlankInWords: fact.No,
	LocaleFolds:    fact.Yes,
	FoldsQuoted:    fact.Yes,
	DigitNames:     fact.Yes,
	Catalogs:       fact.No,
	Targets:        fact.Yes, // Vitess

	Variables:     fact.No,
	QuestionMarks: fact.Yes,
})
