package lex

import "github.com/sqlfence/sqlfence/internal/fact"

// A Grammar describes the statements that a database knows. It is immutable and safe for concurrent use.
type Grammar struct {
	Lex *Rules

	// Statements.
	Blocks         fact.Fact // one may be a block with semicolons of its own, as in MySQL and MariaDB
	Explain        fact.Fact // EXPLAIN ANALYZE runs its statement
	InBrackets     fact.Fact // a statement may stand in brackets, and the query of an INSERT
	Merge          fact.Fact // MERGE
	Code           fact.Fact // DO, CALL and PREPARE; COPY and DECLARE have queries
	CreatesFrom    fact.Fact // CREATE TABLE ... PARTITION OF and INHERITS, and SELECT ... INTO
	SearchAndCycle fact.Fact // SEARCH and CYCLE behind a part of WITH, which may be called RECURSIVE
	NoRows         []string  // begin statements that change no rows

	// Clauses of a write.
	Only          fact.Fact // ONLY name, and name *
	BareAlias     fact.Fact // an alias may stand without AS
	OrClause      fact.Fact // OR x behind the verb, and REPLACE as INSERT OR REPLACE
	IndexedBy     fact.Fact // INDEXED BY and NOT INDEXED
	Limits        fact.Fact // ORDER BY and LIMIT of an UPDATE and DELETE
	RowKeyword    fact.Fact // (a, b) = ROW(1, 2); else (a) = 1
	DoubleEquals  fact.Fact // a == 1 is a = 1
	QualifiedSet  fact.Fact // SET table.column = 1, and := for =
	OnDuplicate   fact.Fact // ON DUPLICATE KEY UPDATE, VALUES(column) in it, VALUES ROW(1, 2), and () VALUES ()
	BehindColumns []string  // may follow the columns of a SELECT

	// Expressions.
	NameWords      []string  // end clauses on one server, and are names where an operand is wanted on another
	ArrowMayFail   fact.Fact // -> and ->>
	MathMayFail    fact.Fact // casts and arithmetic
	TypedConstants fact.Fact // 1::bigint and bigint '1'
	KeepingTypes   []string
}

// CommonEnds are the words that may follow the columns of a SELECT.
var CommonEnds = []string{"from", "where", "group", "having", "union", "intersect", "except", "window", "order",
	"limit", "on", "returning"}

// CommonNoRows begin statements that change no rows in any database.
var CommonNoRows = []string{"begin", "start", "commit", "end", "rollback", "savepoint", "release", "analyze",
	"vacuum", "reindex"}
