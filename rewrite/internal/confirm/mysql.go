package confirm

import "github.com/sqlfence/sqlfence/rewrite/internal/lex"

// MySQL is the dialect of MySQL and MariaDB. A string that ends elsewhere under another
// sql_mode isn't read, nor is a comment that some servers execute.
//
// Source: sql/sql_lex.cc of both.
var MySQL = newDialect(Dialect{
	lineEnds:      "\n",
	blankComments: true,

	introduced: []introduced{
		{start: "b'", sign: signString},
		{start: "n'", sign: signString},
		{start: "x'", sign: signString},
	},
	backquotes: true,
	twoModes:   true,
	digitNames: true,

	placeholder: '?',
	variables:   "@",

	bareAlias:   true,
	onDuplicate: true,
	keywords: newKeywords(map[string]sign{
		"duplicate": kwDuplicate, "key": kwKey, "value": kwValues, "xor": kwOr,
		"delayed": kwModifier, "high_priority": kwModifier, "ignore": kwModifier, "low_priority": kwModifier, "quick": kwModifier,
		"force": kwTableOption, "index": kwTableOption, "partition": kwTableOption, "use": kwTableOption,
		"div": kwInfix, "rlike": kwInfix, "binary": kwPrefix, "interval": kwPrefix,
		"fetch": kwTail, "for": kwTail, "offset": kwTailOrName, "window": kwTailOrName,
	}),
	names: lex.MySQL,
})
