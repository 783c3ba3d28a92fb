package confirm

import "github.com/sqlfence/sqlfence/internal/sql/lex"

// SQLite is SQLite's dialect.
//
// Source: SQLite's src/tokenize.c.
var SQLite = newDialect(Dialect{
	lineEnds:      "\n",
	openComments:  true,
	byteOrderMark: true,

	introduced: []introduced{{start: "x'", sign: signString}},
	backquotes: true,
	brackets:   true,

	placeholder: '?',
	variables:   ":@#$",

	keywords: newKeywords(map[string]sign{
		"fetch": kwTailOrName, "for": kwTailOrName, "offset": kwTailOrName, "window": kwTailOrName,
	}),
	names: lex.SQLite,
})
