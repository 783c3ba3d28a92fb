// Package guard has what guards are described with. What one says in the SQL of a database is filled in by
// the folders of internal/dialect, and asked for by package rewrite. What it finds in a statement, and what it
// raises, is filled in by package rewrite, and asked for by internal/core.
package guard

import (
	"github.com/sqlfence/sqlfence/internal/fact"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

// A Dialect is what the guard says in the SQL of one database. What follows from how the database is read, as its
// grammar has it, is no fact here.
type Dialect struct {
	Facts
	Texts
	Ground
	Search

	// Unsealable says why no table can be sealed; empty where one can.
	Unsealable string

	// MaxInputs is how many arguments a statement may have, and MaxAdded how many values the guard may
	// add as arguments, also before others with numbers: where there are more, the guard has constants.
	MaxInputs, MaxAdded int

	// DefiningTables have rows that are the definitions of tables, triggers and the like. They are in DefiningSchema,
	// and another schema's table of such a name isn't one; without a DefiningSchema they are in every schema.
	DefiningTables []string
	DefiningSchema string

	// RowNumbers are other names for a table's key.
	RowNumbers []string

	// KeyReturner is the function that returns its value, and has the statement return it as the last
	// inserted key; empty for none.
	KeyReturner string

	// RowCounter is the function that counts the rows as they are selected; empty without one.
	RowCounter string

	// FoundCounter is the function that counts the rows of the last query, also of one inside of its own statement;
	// empty without one.
	FoundCounter string

	// LedgerCheck writes the condition that is true or raises: it compares a token with
	// the newest one of its name.
	LedgerCheck func(w Writer, token int)

	// LedgerFirst writes the condition that asks the ledger before the first row: the same, or,
	// where that stands in WITH, one that raises for an older token alone.
	LedgerFirst func(w Writer, token int)

	// LedgerTail writes a clause behind the query of an INSERT that asks the ledger before the
	// query's first row.
	LedgerTail func(w Writer)

	// ClaimsAtOnce is from how many claims on the guard of a row compares them as one argument, which is looked up by
	// the condition that AmongClaims writes; 0 for never: it compares a list.
	ClaimsAtOnce int
	AmongClaims  func(w Writer, of Lookup)

	// SpellsKey writes a condition for a row that is taken over: a token with another value than the row's claim may
	// name the row's key otherwise than the database prints it, as 01 names 1. It holds if the key's type takes the two
	// for equal, and for types that the server can't compare without an error.
	SpellsKey func(w Writer)

	// ClaimsCheck is LedgerCheck where tokens are compared with the claims of rows: of all of the table's
	// tokens. ClaimsFirst and ClaimsTail are LedgerFirst and LedgerTail.
	ClaimsCheck, ClaimsFirst, ClaimsTail func(w Writer)

	// ProveDelete writes a condition that is always true and, as a side effect, proves the tokens
	// of the statement's deletes to a sealed table, or [ProvenHere].
	ProveDelete func(w Writer)
}

// ProvenHere is what a DELETE proves to a sealed table where its own condition has compared the claim of each row.
const ProvenHere = "="

// Facts are how a database executes what a guard relies on.
type Facts struct {
	// SetsInOrder: an expression of a SET list sees what those before it have
	// assigned. The rows are checked before the first of them then, and what the rules
	// assign stands behind the last. A column may be assigned twice, and be qualified.
	SetsInOrder fact.Fact

	// ReadsNewRow: a value of a row to insert reads the columns before it as
	// they will be stored; those of a query don't. There a row's key is compared, which the
	// database may change in silence.
	ReadsNewRow fact.Fact

	// ReadsWith: WITH begins a statement behind a bracket where a column
	// of that name is used.
	ReadsWith fact.Fact

	// SkipsLocked: SKIP LOCKED leaves rows out.
	SkipsLocked fact.Fact

	// WritesInWith: WITH may write rows. There the ledger's check stands in WITH before the statement, and
	// else in the WHERE of each write.
	WritesInWith fact.Fact

	// ChecksBeyondLimit: a write with LIMIT is guarded by a condition, which may be
	// evaluated for rows that the limit leaves out: it may be refused for one of them.
	ChecksBeyondLimit fact.Fact

	// SortsAside: the rows of an UPDATE that are sorted may be written from a
	// temporary table, if the statement has a subquery.
	SortsAside fact.Fact

	// FindsDatesByNull: IS NULL holds for other values than NULL as the condition of a
	// query, and not elsewhere.
	FindsDatesByNull fact.Fact

	// LedgerInRow: of an INSERT, the ledger's check stands around a value of the first row,
	// and else in a WHERE that the rows pass.
	LedgerInRow fact.Fact

	// SeeksFirst: a condition isn't evaluated where an index has no row, though it
	// has no column.
	SeeksFirst fact.Fact

	// PlansMatch: a virtual table's plan evaluates MATCH, and a comparison of the column with its own name, which
	// have another meaning inside of an expression.
	PlansMatch fact.Fact

	// OwnLedgers: each schema has a ledger of its own, for its tables, and so it has the table of their claims.
	OwnLedgers fact.Fact
}

// Around is what stands before, between and behind expressions.
type Around struct{ Before, Between, Behind string }

// Parts returns them one by one, and Ends the outer two.
func (a *Around) Parts() (before, between, behind string) { return a.Before, a.Between, a.Behind }

func (a *Around) Ends() (before, behind string) { return a.Before, a.Behind }

// Texts are what stands around a guard's expressions.
type Texts struct {
	// Size makes a number that is never NULL, nor negative, of a column that stores a token. The
	// lowest integer has none, and becomes the highest, above all tokens.
	Size Around

	// KeyText makes text that is compared byte by byte of a column, whatever its type
	// and collation.
	KeyText Around

	// ClaimText makes one text of a key, as KeyText makes it, and an integer, with a colon between
	// them. It is NULL for a key that is.
	ClaimText Around

	// Equal, Less and LessOrEqual compare two integers; neither is NULL.
	Equal, Less, LessOrEqual Around

	// Greatest returns the higher one of two integers.
	Greatest Around

	// Unless returns the first of two integers, or NULL if they are equal.
	Unless Around

	// Assigns assigns an expression to a column, of an UPDATE only: what it writes is an
	// error where a condition stands.
	Assigns Around

	// NotInteger is a condition that holds for a column with another value than an
	// integer or NULL; empty if there can't be any.
	NotInteger Around

	// Assigned makes an integer of a value that the statement assigns to an integer
	// column, as it is stored there, or of what the column has if the value is NULL. The
	// column also gives an argument its type.
	Assigned Around

	// Strict are the functions of these that take integers only: the database lacks one for another column.
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

// Compares returns what stands around two integers that are compared.
func (t *Texts) Compares(c Comparison) *Around {
	switch c {
	case Less:
		return &t.Less
	case LessOrEqual:
		return &t.LessOrEqual
	}
	return &t.Equal
}

// A Ground is what guards rely on besides tables, which no statement may change.
type Ground struct {
	Code string // the language of functions, which may be dropped with all of them; empty for none
	Home string // the schema in which tables are made by default; empty for none

	// Cascades: a schema is dropped with what is in it only by CASCADE.
	Cascades fact.Fact

	// Setting returns the name of a setting at a token, if it is one to be kept; nil for none. A read
	// may change one only if it has one of the names; if there are none, in any way.
	Setting func(t *lex.Scanned, i int32) string
	Setters []string

	// Unseen returns why what stands at a token may change a setting that the text doesn't show; nil
	// where nothing can. Argument returns the number of the argument that has the setting's name there; ok is false
	// if none has.
	Unseen   func(t *lex.Scanned, i int32) string
	Argument func(t *lex.Scanned, i int32) (number int, ok bool)
}

// Search is what has a text read beside the names of tables, where some are registered.
type Search struct {
	Names     []string // wherever they stand
	Words     []string
	LockWords []string // where a table has locks
}
