package read

import (
	"slices"

	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

// SQLite is the grammar of SQLite, src/parse.y.
//
// It takes a word of its list %fallback ID for a name where the keyword can't stand: a
// column may be called end, and it is the END of a CASE only behind an operand.
var SQLite = &Grammar{
	Lex: lex.SQLite,

	replace:   true,
	textNames: true,
	// EXPLAIN never runs the statement.
	noRows: slices.Concat(commonNoRows, []string{"explain", "pragma", "attach", "detach"}),

	orClause:        true,
	indexedBy:       true,
	limits:          true,
	plainInBrackets: true,
	doubleEquals:    true,
	behindColumns:   commonEnds,

	words: newWords("fetch for",
		"asymmetric do end glob ilike lateral like match offset only overlaps regexp symmetric to variadic window with"),
	windowLooksOn: true,
	arrowMayFail:  true,
	namedParams:   true,
	keepingTypes:  []string{"text"},
}
