package confirm

import "github.com/sqlfence/sqlfence/internal/sql/lex"

// Postgres is PostgreSQL's dialect. Backslashes in plain strings are characters: a
// text that reads otherwise without standard_conforming_strings isn't rendered.
//
// Source: PostgreSQL's src/backend/parser/scan.l.
var Postgres = newDialect(Dialect{
	lineEnds:       "\n\r",
	nestedComments: true,

	introduced: []introduced{
		{start: "e'", sign: signString, escapes: true},
		{start: "b'", sign: signString},
		{start: "n'", sign: signString},
		{start: "x'", sign: signString},
		{start: "u&'", sign: signString},
		{start: `u&"`, sign: signName},
	},
	dollarQuotes: true,

	placeholder: '$',
	inlined:     true,

	bareAlias: true,
	keywords: newKeywords(map[string]sign{
		"only":       kwOnly,
		"asymmetric": kwPrefix, "lateral": kwPrefix, "symmetric": kwPrefix,
		"fetch": kwTail, "for": kwTail, "offset": kwTail, "window": kwTail,
	}),
	names: lex.Postgres,
})
