package mysql

import (
	"github.com/sqlfence/sqlfence/internal/fact"
	"github.com/sqlfence/sqlfence/internal/sql/confirm"
)

// Confirm is the dialect of MySQL and MariaDB, to the second look. What depends on sql_mode or on the server's
// version can't be read: a backslash before a quote, and a comment that may be code.
//
// Source: sql/sql_lex.cc of both.
var Confirm = confirm.NewDialect(confirm.Dialect{
	LineEnds:       "\n",
	NestedComments: fact.No,
	OpenComments:   fact.No,
	ByteOrderMark:  fact.No,
	HashComments:   fact.Yes,

	Introduced:   []string{"b'", "n'", "x'"},
	Backquotes:   fact.Yes,
	Brackets:     fact.No,
	DollarQuotes: fact.No,
	TwoModes:     fact.Yes,
	DigitNames:   fact.Yes,

	Placeholder: '?',
	Variables:   "@",
	Inlined:     fact.No,

	BareAlias:  fact.Yes,
	Conditions: fact.Yes,
	Joins:      fact.Yes,
	Words: confirm.Words{
		"duplicate": confirm.Duplicate, "key": confirm.Key, "exists": confirm.Exists,
		"low_priority": confirm.Modifier, "high_priority": confirm.Modifier, "delayed": confirm.Modifier,
		"quick": confirm.Quick, "ignore": confirm.Modifier,
		"use": confirm.IndexHint, "force": confirm.IndexHint, "partition": confirm.Partition,
		"straight_join": confirm.Join, "value": confirm.ValuesWord,
		"div": confirm.Infix, "mod": confirm.Infix, "rlike": confirm.Infix, "xor": confirm.Or,
		"binary": confirm.Prefix, "interval": confirm.Prefix, "lateral": confirm.Prefix,
		"having": confirm.Having, "fetch": confirm.TailWord, "for": confirm.TailWord,
		"offset": confirm.TailOrName, "window": confirm.TailOrName,
	},
	Names: Lex,
})
