package sqlite

import (
	"slices"

	"github.com/sqlfence/sqlfence/internal/fact"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

// Grammar is the grammar of SQLite, src/parse.y.
//
// SQLite reads a word of its list %fallback ID as a name where the keyword can't stand. For example, a column may be
// called end, and the word is the END of a CASE only after an operand.
var Grammar = &lex.Grammar{
	Lex: Lex,

	Blocks:         fact.No,
	Explain:        fact.No,
	InBrackets:     fact.No,
	Merge:          fact.No,
	Code:           fact.No,
	CreatesFrom:    fact.No,
	SearchAndCycle: fact.No,
	NoRows:         slices.Concat(lex.CommonNoRows, []string{"explain", "pragma", "attach", "detach"}),

	Only:         fact.No,
	BareAlias:    fact.No,
	OrClause:     fact.Yes,
	IndexedBy:    fact.Yes,
	Limits:       fact.Yes,
	RowKeyword:   fact.No,
	DoubleEquals: fact.Yes,
	QualifiedSet: fact.No,
	OnDuplicate:  fact.No,
	AfterColumns: lex.CommonEnds,

	ArrowMayFail:   fact.Yes,
	MathMayFail:    fact.No,
	TypedConstants: fact.No,
	KeepingTypes:   []string{"text"},
}
