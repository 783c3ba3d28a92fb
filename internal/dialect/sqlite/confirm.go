package sqlite

import (
	"github.com/sqlfence/sqlfence/internal/fact"
	"github.com/sqlfence/sqlfence/internal/sql/confirm"
)

// Confirm is SQLite's dialect, to the second look.
//
// Source: SQLite's src/tokenize.c.
var Confirm = confirm.NewDialect(confirm.Dialect{
	LineEnds:       "\n",
	NestedComments: fact.No,
	OpenComments:   fact.Yes,
	ByteOrderMark:  fact.Yes,
	HashComments:   fact.No,

	Introduced:   []string{"x'"},
	Backquotes:   fact.Yes,
	Brackets:     fact.Yes,
	DollarQuotes: fact.No,
	TwoModes:     fact.No,
	DigitNames:   fact.No,

	Placeholder: '?',
	Variables:   ":@#$",
	Inlined:     fact.No,

	BareAlias:  fact.No,
	Conditions: fact.No,
	Joins:      fact.No,
	Words: confirm.Words{
		"fetch": confirm.TailOrName, "for": confirm.TailOrName, "offset": confirm.TailOrName,
		"window": confirm.TailOrName,
	},
	Names: Lex,
})
