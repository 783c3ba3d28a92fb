package confirm

import "github.com/sqlfence/sqlfence/rewrite/internal/lex"

// SQLite is SQLite's dialect.
//
// Source: SQLite's src/tokenize.c.
var SQLite = &Dialect{
	lineEnds:      "\n",
	openComments:  true,
	byteOrderMark: true,

	introduced:   []introduced{{start: "x'", sign: signString}},
	nameQuotes:   "\"`",
	bracketNames: true,

	placeholder: '?',
	variables:   ":@#$",

	keywords: newKeywords(map[string]sign{
		"indexed": kwIndexed,
		"fetch":   kwTailOrName, "for": kwTailOrName, "offset": kwTailOrName, "window": kwTailOrName,
	}),
	names: lex.SQLite,
}
