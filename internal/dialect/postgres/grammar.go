package postgres

import (
	"slices"

	"github.com/sqlfence/sqlfence/internal/fact"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

// Grammar is the grammar of PostgreSQL, src/backend/parser/gram.y.
//
// PostgreSQL reserves the keywords that begin a clause (src/include/parser/kwlist.h). Without AS no such keyword is a
// column's label, so it ends the clause before. CASE, WHEN, THEN, ELSE and END after an operand can be a label.
var Grammar = &lex.Grammar{
	Lex: Lex,

	Blocks:         fact.No,
	Explain:        fact.Yes,
	InBrackets:     fact.Yes,
	Merge:          fact.Yes,
	Code:           fact.Yes,
	CreatesFrom:    fact.Yes,
	SearchAndCycle: fact.Yes,
	NoRows: slices.Concat(lex.CommonNoRows, []string{"abort", "set", "reset", "show", "listen", "unlisten", "notify",
		"fetch", "move", "close", "deallocate", "discard", "execute",
		"lock", "checkpoint", "cluster", "refresh", "comment", "grant", "revoke"}),

	Only:         fact.Yes,
	BareAlias:    fact.Yes,
	OrClause:     fact.No,
	IndexedBy:    fact.No,
	Limits:       fact.No,
	RowKeyword:   fact.Yes,
	DoubleEquals: fact.No,
	QualifiedSet: fact.No,
	OnDuplicate:  fact.No,
	AfterColumns: slices.Concat(lex.CommonEnds, []string{"offset", "fetch", "for", "into"}),

	ArrowMayFail:   fact.No,
	MathMayFail:    fact.Yes,
	TypedConstants: fact.Yes,
	KeepingTypes:   []string{"smallint", "int", "integer", "bigint", "int2", "int4", "int8", "uuid", "text", "varchar"},
}
