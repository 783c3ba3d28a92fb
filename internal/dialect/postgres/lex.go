package postgres

import (
	"github.com/sqlfence/sqlfence/internal/fact"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

// Lex has the lexical rules of PostgreSQL.
//
// Source: PostgreSQL's src/backend/parser/scan.l and scansup.c; NAMEDATALEN is 64.
var Lex = lex.NewRules(lex.Rules{
	LineEnds:       "\r\n",
	NestedComments: fact.Yes,
	OpenComments:   fact.No,
	HashComments:   fact.No,
	ByteOrderMark:  fact.No,

	RawStrings:        "bx",
	PlainStrings:      "n",
	EscapeStrings:     "e",
	UnicodeEscapes:    fact.Yes,
	ConformingStrings: fact.Yes,
	Continued:         fact.Yes,
	DollarQuotes:      fact.Yes,
	TwoModes:          fact.No,
	Encoding:          "client_encoding",

	Backquotes:     fact.No,
	Brackets:       fact.No,
	TextNames:      fact.No,
	NoBlankInWords: fact.No,
	LocaleFolds:    fact.Yes,
	FoldsQuoted:    fact.No,
	DigitNames:     fact.No,
	Catalogs:       fact.Yes,
	Targets:        fact.No,
	MaxName:        63,

	Variables:     fact.No,
	QuestionMarks: fact.No,
})
