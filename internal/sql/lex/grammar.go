package lex

import "github.com/sqlfence/sqlfence/internal/fact"

// A Grammar describes the statements that a database knows. It is immutable and safe for concurrent use.
type Grammar struct {
	Lex *Rules

	// Statements.
	Blocks         fact.Fact // a statement may be a block that contains semicolons, as in MySQL and MariaDB
	Explain        fact.Fact // EXPLAIN ANALYZE runs its statement
	InBrackets     fact.Fact // a statement, and the query of an INSERT, may stand in brackets
	Merge          fact.Fact // the database has MERGE
	Code           fact.Fact // DO, CALL and PREPARE run code; COPY and DECLARE have queries
	CreatesFrom    fact.Fact // the database has CREATE TABLE ... PARTITION OF or INHERITS, and SELECT ... INTO
	SearchAndCycle fact.Fact // SEARCH and CYCLE may follow an item of WITH, which may be named RECURSIVE
	NoRows         []string  // first words of statements that change no rows

	// Clauses of a write.
	Only         fact.Fact // a table may be written as ONLY name, or name *
	BareAlias    fact.Fact // an alias needs no AS
	OrClause     fact.Fact // OR x may follow the verb, and REPLACE means INSERT OR REPLACE
	IndexedBy    fact.Fact // INDEXED BY and NOT INDEXED may follow a table
	Limits       fact.Fact // UPDATE and DELETE may have ORDER BY and LIMIT
	RowKeyword   fact.Fact // SET may contain (a, b) = ROW(1, 2); otherwise (a) = 1
	DoubleEquals fact.Fact // a == 1 means a = 1
	QualifiedSet fact.Fact // SET may contain table.column = 1, and := for =
	OnDuplicate  fact.Fact // ON DUPLICATE KEY UPDATE, VALUES(column) in it, VALUES ROW(1, 2), and () VALUES ()
	AfterColumns []string  // words that may follow the columns of a SELECT

	// Expressions.
	NameWords      []string  // words that end a clause on one server, and may be names on another
	ArrowMayFail   fact.Fact // -> and ->> may throw an error
	MathMayFail    fact.Fact // casts and arithmetic may throw an error
	TypedConstants fact.Fact // constants may be written as 1::bigint and bigint '1'
	KeepingTypes   []string  // types that store a constant's text unchanged, or refuse it
}

// CommonEnds are the words that may follow the columns of a SELECT.
var CommonEnds = []string{"from", "where", "group", "having", "union", "intersect", "except", "window", "order",
	"limit", "on", "returning"}

// CommonNoRows are the first words of statements that change no rows in any database.
var CommonNoRows = []string{"begin", "start", "commit", "end", "rollback", "savepoint", "release", "analyze",
	"vacuum", "reindex"}
