// Package guard has the types that describe guards. The folders of internal/dialect fill in a guard's SQL for each
// database, and package rewrite uses it. Package rewrite fills in what it finds in a statement ([Target], [Refusal])
// and in an error ([Marker]), and internal/core uses these.
package guard

import (
	"github.com/sqlfence/sqlfence/internal/fact"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

// A Dialect describes the guard's SQL for one database. Facts that follow from the database's grammar are not repeated
// here.
type Dialect struct {
	Capabilities
	Texts
	Protected
	Search

	// Unsealable is why no table can be sealed; empty if tables can be sealed.
	Unsealable string

	// MaxInputs is the maximum number of a statement's arguments. MaxAdded is the maximum number of arguments that the
	// guard may add. Above either limit the guard uses constants.
	MaxInputs, MaxAdded int

	// DefiningTables are system tables with rows that define tables, triggers and the like, so writes to them are
	// refused. Only tables in DefiningSchema count; without a DefiningSchema those of every schema.
	DefiningTables []string
	DefiningSchema string

	// RowNumbers are other names for a table's key, such as rowid.
	RowNumbers []string

	// KeyReturner is a function in which an UPDATE may wrap the key that it assigns: it returns its argument, and makes
	// the statement report it as the last inserted key. It is empty if the database has no such function.
	KeyReturner string

	// RowCounter counts rows as they are selected. An UPDATE that calls it is refused, as a guard may stop the count.
	RowCounter string

	// FoundCounter is the function that counts the rows of the last query, even of a guard's query in the same
	// statement. A write that calls it is refused if its guard has a query.
	FoundCounter string

	// LedgerCheck writes the condition that compares a token with the newest token of its name. The condition is true
	// or throws an error.
	LedgerCheck func(w Writer, token int)

	// LedgerFirst writes the condition that checks the ledger before the first row: LedgerCheck's condition or, if that
	// stands in WITH, one that refuses stale tokens only, because its snapshot may be old.
	LedgerFirst func(w Writer, token int)

	// LedgerTail writes a clause after the query of an INSERT that checks the ledger before the query's first row.
	LedgerTail func(w Writer)

	// LockLedger and LockClaims write a query that compares a token with the ledger, or the tokens with claims, and
	// locks the rows. They are nil without [sqltext.Capabilities].LocksFirst.
	LockLedger func(w Writer, token int)
	LockClaims func(w Writer)

	// ClaimsAtOnce is the number of claims from which on a row's guard passes all as one argument, a JSON object, which
	// the condition of AmongClaims searches. For fewer claims, or if it is 0, the guard compares each claim of a list.
	ClaimsAtOnce int
	AmongClaims  func(w Writer, of Lookup)

	// SpellsKey writes a condition for a row that is to be claimed. The guard throws an error if the condition holds:
	// if a token with another value than the row's claim may spell the row's key differently, as 01 instead of 1: the
	// key's type takes both for equal, or can't be compared without an error.
	SpellsKey func(w Writer)

	// ClaimsCheck, ClaimsFirst and ClaimsTail are LedgerCheck, LedgerFirst and LedgerTail for tokens that are compared
	// with the claims of rows. ClaimsCheck compares all of the table's tokens.
	ClaimsCheck, ClaimsFirst, ClaimsTail func(w Writer)

	// PresentDelete writes a condition that is always true. Its side effect presents the tokens of the statement's
	// deletes, or [ComparedHere], to a sealed table.
	PresentDelete func(w Writer)
}

// ComparedHere is what a DELETE presents to a sealed table if the DELETE's own condition has compared each row's claim.
const ComparedHere = "="

// Capabilities are the properties of a database's execution that guards depend on.
type Capabilities struct {
	// SetsInOrder: an expression of a SET list sees the assignments before it. Then the guard checks rows before the
	// first assignment, and assigns its own columns after the last one. A column may be assigned twice, and have a
	// qualified name.
	SetsInOrder fact.Fact

	// ReadsNewRow: in the VALUES of an INSERT, but not in its query, an expression can read the row's earlier columns
	// as they will be stored. The guard compares the key there, because the database may silently change a key.
	ReadsNewRow fact.Fact

	// ReadsWith: after an opening bracket WITH begins a query, so a guard can't put a bracket before a column of that
	// name.
	ReadsWith fact.Fact

	// SkipsLocked: a SELECT can leave locked rows out (SKIP LOCKED).
	SkipsLocked fact.Fact

	// WritesInWith: WITH may write rows. Then the ledger's check stands in WITH before the statement, otherwise in the
	// WHERE of each write.
	WritesInWith fact.Fact

	// ChecksBeyondLimit: the condition that guards a write with LIMIT may be evaluated for rows beyond the limit, so
	// that such a row may cause a refusal.
	ChecksBeyondLimit fact.Fact

	// SortsAside: an UPDATE with ORDER BY and a subquery is refused: in a sorted copy a guard may see a wrong row.
	SortsAside fact.Fact

	// FindsDatesByNull: IS NULL holds for some dates other than NULL in WHERE, but in a CASE only within a subquery.
	FindsDatesByNull fact.Fact

	// LedgerInRow: the ledger's check of an INSERT encloses a value of the first row. Otherwise it stands in a WHERE
	// that filters the rows.
	LedgerInRow fact.Fact

	// SeeksFirst: without a row in the index no condition is evaluated. So the sought value has the ledger's check.
	SeeksFirst fact.Fact

	// PlansMatch: a virtual table itself evaluates MATCH, and a comparison of its hidden column. Inside of a guard's
	// CASE both would have another meaning.
	PlansMatch fact.Fact

	// OwnLedgers: each schema has a separate ledger and a separate table of claims for its tables.
	OwnLedgers fact.Fact
}

// Around is the text before, between and after expressions.
type Around struct{ Before, Between, After string }

// Parts returns the three texts, and Ends the outer two.
func (a *Around) Parts() (before, between, behind string) { return a.Before, a.Between, a.After }

func (a *Around) Ends() (before, behind string) { return a.Before, a.After }

// Texts are the SQL texts around a guard's expressions.
type Texts struct {
	// Size makes a column that stores a token a number that is never NULL or negative. The lowest integer, which has no
	// absolute value, becomes the highest integer, above all tokens.
	Size Around

	// ClaimText joins a key, in the form of [sqltext.Capabilities].KeyText, and an integer with a colon. The result is
	// NULL if the key is NULL.
	ClaimText Around

	// Equal, Less and LessOrEqual compare two integers; neither is NULL.
	Equal, Less, LessOrEqual Around

	// Greatest returns the higher one of two integers.
	Greatest Around

	// Unless returns the first of two integers, or NULL if they are equal.
	Unless Around

	// Assigns assigns an expression to a column. Its text is valid only in an UPDATE, and an error in a condition.
	Assigns Around

	// NotInteger is a condition that holds for a column's value that is neither an integer nor NULL; empty if no such
	// value exists.
	NotInteger Around

	// Assigned makes an integer of a value that the statement assigns to an integer column, as the column will store
	// it. If the value is NULL, Assigned uses the column's current value. The column also gives an argument its type.
	Assigned Around

	// Strict are the functions in the fields above that take integers only. For a column of another type the database
	// reports that no such function exists, which counts as the refusal [NotInteger].
	Strict []string
}

// A Comparison is an operator.
type Comparison uint8

// The operators.
const (
	Equal Comparison = iota
	Less
	LessOrEqual
)

// Compares returns the text around two integers for an operator.
func (t *Texts) Compares(c Comparison) *Around {
	switch c {
	case Less:
		return &t.Less
	case LessOrEqual:
		return &t.LessOrEqual
	}
	return &t.Equal
}

// A Protected holds the objects and settings, other than tables, that guards depend on and no statement may change.
type Protected struct {
	Code          string // language of sqlfence's functions, which are dropped with it; empty without functions
	DefaultSchema string // the default schema of new tables; empty if the database has none

	// Cascades: only CASCADE drops a schema together with its objects.
	Cascades fact.Fact

	// Setting returns the name of a setting at token i of t if no statement may change the setting, else an empty text.
	// Setting is nil if the database has no such setting. A statement that only reads and writes rows can change a
	// setting only if it contains a name in Setters, or if Setters is empty.
	Setting func(t *lex.Scanned, i int32) string
	Setters []string

	// DynamicSetting returns why the expression at token i of t may change a setting that t doesn't name; nil if no
	// expression can. Argument returns the number of the argument that is the setting's name; ok is false if no
	// argument is.
	DynamicSetting func(t *lex.Scanned, i int32) string
	Argument       func(t *lex.Scanned, i int32) (number int, ok bool)
}

// Search lists the words that make the planner parse a statement, as the names of tables do, if tables are registered.
type Search struct {
	Names     []string // names to find even inside a longer word
	Words     []string // whole words
	LockWords []string // whole words, if a table has the rule EditLock
}
