package postgres

import (
	"github.com/sqlfence/sqlfence/internal/fact"
	"github.com/sqlfence/sqlfence/internal/sql/confirm"
)

// Confirm is PostgreSQL's dialect, to the second look. Backslashes in plain strings are characters: a
// text that reads otherwise without standard_conforming_strings isn't rendered.
//
// Source: PostgreSQL's src/backend/parser/scan.l.
var Confirm = confirm.NewDialect(confirm.Dialect{
	LineEnds:       "\n\r",
	NestedComments: fact.Yes,
	OpenComments:   fact.No,
	ByteOrderMark:  fact.No,
	HashComments:   fact.No,

	Introduced:   []string{"e'", "b'", "n'", "x'", "u&'", `u&"`},
	Escaped:      "e'",
	Backquotes:   fact.No,
	Brackets:     fact.No,
	DollarQuotes: fact.Yes,
	TwoModes:     fact.No,
	DigitNames:   fact.No,

	Placeholder: '$',
	Inlined:     fact.Yes,

	BareAlias:  fact.Yes,
	Conditions: fact.No,
	Joins:      fact.No,
	Words: confirm.Words{
		"only":       confirm.Only,
		"asymmetric": confirm.Prefix, "lateral": confirm.Prefix, "symmetric": confirm.Prefix,
		"fetch": confirm.TailWord, "for": confirm.TailWord, "offset": confirm.TailWord, "window": confirm.TailWord,
	},
	Names: Lex,
})
