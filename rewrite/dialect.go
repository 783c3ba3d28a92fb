package rewrite

import (
	databases "github.com/sqlfence/sqlfence/internal/dialect"
	my "github.com/sqlfence/sqlfence/internal/dialect/mysql"
	pg "github.com/sqlfence/sqlfence/internal/dialect/postgres"
	lite "github.com/sqlfence/sqlfence/internal/dialect/sqlite"
	"github.com/sqlfence/sqlfence/internal/sql/confirm"
	"github.com/sqlfence/sqlfence/internal/sql/read"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// A Dialect is the SQL that a database speaks. The zero Dialect is none.
type Dialect = databases.Dialect

// The dialects. MySQL is MariaDB's, too.
const (
	Postgres = databases.Postgres
	SQLite   = databases.SQLite
	MySQL    = databases.MySQL
)

// dialects has what the guard says in the SQL of every dialect.
var dialects = [...]dialect{
	Postgres: postgres{Dialect: pg.Text},
	SQLite:   sqlite{lite.Text},
	MySQL:    mysql{Dialect: my.Text},
}

// guarded returns what the guard says in a dialect's SQL.
func guarded(d Dialect) (dialect, error) {
	if _, err := databases.Of(d); err != nil {
		return nil, err
	}
	return dialects[d], nil
}

// A dialect is what the guard says in the SQL of one database. A method that returns
// several texts returns what stands before, between and behind expressions.
type dialect interface {
	sqltext.Dialect

	// grammar is the dialect as it is read.
	grammar() *read.Grammar

	// searches adds names that a text is searched for, where these tables are registered.
	searches(s *search, tables []Table)

	// ground is what guards rely on besides tables.
	ground() *ground

	// secondLook is the dialect as the guard's places are confirmed in it.
	secondLook() *confirm.Dialect

	// maxInputs is how many arguments a statement may have.
	maxInputs() int

	// maxAdded is how many values the guard may add as arguments, and maxNumbered how many
	// arguments with numbers the statement may have if the guard adds some: where there
	// are more, the guard has constants.
	maxAdded() int
	maxNumbered() int

	// numbersInputs reports whether placeholders may have numbers. Else the guard has one, and
	// an argument, for each use of a value.
	numbersInputs() bool

	// size makes a number that is never NULL, nor negative, of a column that stores a token. The
	// lowest integer has none, and becomes the highest, above all tokens.
	size() (before, behind string)

	// lacksComparison reports whether err says that a column which is compared with a token has
	// another type, which the guard's functions don't take.
	lacksComparison(err error) bool

	// keyText makes text that is compared byte by byte of a column, whatever its type
	// and collation.
	keyText() (before, behind string)

	// claimText makes one text of a key, as keyText makes it, and an integer, with a colon between
	// them. It is NULL for a key that is.
	claimText() (before, between, behind string)

	// compares compares two integers; neither is NULL.
	compares(c comparison) (before, between, behind string)

	// greatest returns the higher one of two integers.
	greatest() (before, between, behind string)

	// unsealable says why no table can be sealed; empty where one can.
	unsealable() string

	// proveDelete writes a condition that is always true and, as a side effect, proves the tokens
	// of the statement's deletes to a sealed table.
	proveDelete(w *writer)

	// assigns assigns an expression to a column, of an UPDATE only: what it writes is an
	// error where a condition stands.
	assigns() (before, between, behind string)

	// setsInOrder reports whether an expression of a SET list sees what those before it have
	// assigned. The rows are checked before the first of them then, and what the rules
	// assign stands behind the last. A column may be assigned twice, and be qualified.
	setsInOrder() bool

	// notInteger is a condition that holds for a column with another value than an
	// integer or NULL; empty if there can't be any.
	notInteger() (before, behind string)

	// assigned makes an integer of a value that the statement assigns to an integer
	// column, as it is stored there, or of what the column has if the value is NULL. The
	// column also gives an argument its type.
	assigned() (before, between, behind string)

	// asInteger is a cast of an integer column to the type of assigned.
	asInteger() string

	// definesTables reports whether the rows of a table are the definitions of tables.
	definesTables(table string) bool

	// isRowNumber reports whether a column is another name for the table's key.
	isRowNumber(column string) bool

	// keyReturner is the function that returns its value, and has the statement return it as the last
	// inserted key; empty for none.
	keyReturner() string

	// declaresConflicts reports whether a table may declare what becomes of a write that
	// breaks a constraint, which OR ABORT overrides.
	declaresConflicts() bool

	// readsWith reports whether WITH begins a statement behind a bracket where a column
	// of that name is used.
	readsWith() bool

	// skipsLocked reports whether SKIP LOCKED leaves rows out.
	skipsLocked() bool

	// writesInWith reports whether WITH may write rows.
	writesInWith() bool

	// checksBeyondLimit reports whether a write with LIMIT is guarded by a condition, which may be
	// evaluated for rows that the limit leaves out: it may be refused for one of them.
	checksBeyondLimit() bool

	// sortsAside reports whether the rows of an UPDATE that are sorted may be written from a
	// temporary table, if the statement has a subquery.
	sortsAside() bool

	// rowCounter returns the function that counts the rows as they are selected; empty without one.
	rowCounter() string

	// findsDatesByNull reports whether IS NULL holds for other values than NULL as the condition of a
	// query, and not elsewhere.
	findsDatesByNull() bool

	// tellsCases reports whether names of tables and aliases that differ in the case of letters
	// alone may mean different tables.
	tellsCases() bool

	// countsLastRows reports whether drivers count the rows of a text's last statement,
	// and in different ways those of one that returns rows.
	countsLastRows() bool

	// guardsSeveral reports whether one statement of a text with several can be guarded.
	guardsSeveral() bool

	// ledgerCheck writes the condition that is true or raises: it compares a token with
	// the newest one of its name.
	ledgerCheck(w *writer, token int)

	// ledgerFirst writes the condition that asks the ledger before the first row: the same, or,
	// where that stands in WITH, one that raises for an older token alone.
	ledgerFirst(w *writer, token int)

	// ledgerTail writes a clause behind the query of an INSERT that asks the ledger before the
	// query's first row.
	ledgerTail(w *writer)

	// claimsCheck is ledgerCheck for a table with [Table.ClaimOf], and all of its tokens: they are compared
	// with the rows' claims. claimsFirst and claimsTail are ledgerFirst and ledgerTail.
	claimsCheck(w *writer)
	claimsFirst(w *writer)
	claimsTail(w *writer)

	// builtIn names a function of the database's, so that none of the application's takes its place.
	builtIn(function string) string

	// claimsBesideTarget reports whether a table without a schema that has the claims is in the schema of the
	// written table.
	claimsBesideTarget() bool

	// seeksFirst reports whether a condition isn't evaluated where an index has no row, though it
	// has no column.
	seeksFirst() bool

	// ledgerName is the ledger's table as the guard names it, and withLedgerSchema the dialect with
	// guards that name it in a schema; itself where the ledger belongs to the written table's.
	ledgerName() string
	withLedgerSchema(schema string) dialect

	// withLedgerFunction is the dialect with guards that ask the ledger by the function
	// of this schema; itself where there is no such function.
	withLedgerFunction(schema string) dialect

	// shadowsLedger reports whether an item of WITH with this name would stand before the
	// ledger, or before what the guard adds to ask it.
	shadowsLedger(item string) bool

	// ledgerInWhere reports whether the ledger's check stands in the WHERE of each
	// write, and else in WITH before the statement.
	ledgerInWhere() bool

	// ledgerInRow reports whether, of an INSERT, it stands around a value of the first row,
	// and else in a WHERE that the rows pass.
	ledgerInRow() bool

	// readsNewRow reports whether a value of a row to insert reads the columns before it as
	// they will be stored; those of a query don't. There a row's key is compared, which the
	// database may change in silence.
	readsNewRow() bool

	// upsertSeesQuery reports whether an upsert's assignments see the tables of the query that
	// its rows come from, as well as the one that is written.
	upsertSeesQuery() bool

	// upsert is the clause that lets an INSERT update, with the assignments to columns, if any are
	// given.
	upsert(columns []string) string
}

// A comparison is an operator.
type comparison uint8

const (
	equal comparison = iota
	less
	lessOrEqual
)
