package sqlite

import (
	"github.com/sqlfence/sqlfence/internal/fact"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

// Lex has the lexical rules of SQLite.
//
// Source: SQLite's src/tokenize.c.
var Lex = lex.NewRules(lex.Rules{
	LineEnds:       "\n",
	NestedComments: fact.No,
	OpenComments:   fact.Yes,
	HashComments:   fact.No,
	ByteOrderMark:  fact.Yes,

	RawStrings:        "x",
	UnicodeEscapes:    fact.No,
	ConformingStrings: fact.No,
	Continued:         fact.No,
	DollarQuotes:      fact.No,
	TwoModes:          fact.No,

	Backquotes:     fact.Yes,
	Brackets:       fact.Yes,
	TextNames:      fact.Yes,
	NoBlankInWords: fact.Yes,
	LocaleFolds:    fact.No,
	FoldsQuoted:    fact.No,
	DigitNames:     fact.No,
	Catalogs:       fact.No,
	Targets:        fact.No,

	Variables:     fact.Yes,
	QuestionMarks: fact.No,
})
