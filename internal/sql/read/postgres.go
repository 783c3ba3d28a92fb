package read

import (
	"slices"

	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

// Postgres is the grammar of PostgreSQL, src/backend/parser/gram.y.
//
// It reserves the words that begin a clause (src/include/parser/kwlist.h), and takes
// none of these for a label without AS; CASE, WHEN, THEN, ELSE and END it takes for
// one behind an operand.
var Postgres = &Grammar{
	Lex: lex.Postgres,

	explain:        true,
	inBrackets:     true,
	merge:          true,
	code:           true,
	copies:         true,
	joins:          true,
	selectInto:     true,
	recursiveName:  true,
	searchAndCycle: true,
	noRows: slices.Concat(commonNoRows, []string{"abort", "set", "reset", "show", "listen", "unlisten", "notify",
		"fetch", "move", "close", "deallocate", "discard", "execute",
		"lock", "cluster", "refresh", "comment", "grant", "revoke"}),
	encodings: true,

	only:            true,
	bareAlias:       true,
	queryInBrackets: true,
	rowKeyword:      true,
	behindColumns:   slices.Concat(commonEnds, []string{"offset", "fetch", "for", "into"}),

	words:          newWords("", "between escape glob match regexp"),
	caseLabel:      true,
	operatorCalls:  true,
	withNoClause:   true,
	mathMayFail:    true,
	typedConstants: true,
	keepingTypes:   []string{"smallint", "int", "integer", "bigint", "int2", "int4", "int8", "uuid", "text", "varchar"},
}
