package rowlock

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"strings"

	"github.com/sqlfence/sqlfence/internal/cleanup"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// A dialect has the texts for one database, with the pieces of a [Table]; see newFragments.
type dialect struct {
	spelling

	// sendUpdate applies u if the row's lock and version allow it, and then stores u.load's columns in u.dest. It
	// returns the row's state, also of a refusal, or sql.ErrNoRows if there is no such row.
	sendUpdate func(ctx context.Context, q owned, t *Table, u lockUpdate) (rowState, error)

	// set writes a SET list to a row, even if a user has locked it, and returns the new state, or sql.ErrNoRows for no
	// row.
	set func(ctx context.Context, q owned, t *Table, list string, key []any, others sqltext.Fragments) (rowState, error)

	// multiStatement: sendUpdate and set send several statements, and need a transaction.
	multiStatement bool

	// abandoning calls send with the text of a statement that may wait for a lock. If ctx ends meanwhile, abandoning
	// ends the statement on the server, unless the driver itself does.
	abandoning func(ctx context.Context, queue *cleanup.Queue, text string, send func(text string) error) error

	upsert string // ends an INSERT into rowlocks, and replaces an existing row
	create string // creates the table rowlocks if there is none
	unfit  string // a query for a fault of an existing table rowlocks, or NULL; may be empty

	// lockRow is a query that locks the row until the transaction ends; empty if the first write locks the whole file.
	lockRow string

	// isolation is the lowest level at which each statement reads the newest version of a row.
	isolation sql.IsolationLevel

	// wantsTime is the type of a time's column, and isTime accepts types, as listColumns yields them.
	wantsTime string
	isTime    func(typ string) bool

	listColumns  string // a query for each column's name, type, and whether it is NOT NULL
	hasUniqueKey string // a query for whether a unique index has only columns of {keynames}, so that these are unique
}

// A spelling has the SQL with which a database writes values and columns.
type spelling struct {
	sqltext.Dialect

	// binary converts an expression so that a comparison distinguishes all texts, such as A and a, in any collation.
	binary func(expression string) string

	// stored is the SQL to convert a value for a column of the table rowlocks, and shown the SQL to read the column.
	stored, shown func(string) string

	// same is a condition that a column has a value, of any type.
	same func(column, value string) string

	// equals compares a column of the row's key with a value, by the operator of the column's type.
	equals string

	// user converts a user's ID for sending, to a column of integers or of texts.
	user func(id driver.Value) driver.Value

	version   string // {serial} as an integer, or unchanged if the value may not be an integer
	versioned string // a condition that {serial} is an integer

	// keyText is an expression for the row's key as a JSON array of {keycolumns}, with keyComma between two values. The
	// database builds the array, so that a row has the same text for keys of any Go type.
	keyText, keyComma string
}

var dialects = dialectopt.For(postgres, sqlite, mysql)

func asItIs(expression string) string        { return expression }
func equals(column, value string) string     { return column + " = " + value }
func plainUser(id driver.Value) driver.Value { return id }

// byTheDriver is the function abandoning of a dialect with a driver that itself ends a statement when its context ends.
func byTheDriver(_ context.Context, _ *cleanup.Queue, text string, send func(text string) error) error {
	return send(text)
}

// createWith returns the definition of the table with a type for times.
func createWith(timeType string) string { return strings.ReplaceAll(createTable, "{time}", timeType) }

const createTable = `CREATE TABLE IF NOT EXISTS rowlocks (
	table_name text NOT NULL,
	row_key    text NOT NULL,
	user_id    text NOT NULL,
	session    text NOT NULL,
	since      {time} NOT NULL,
	expiry     {time} NOT NULL,
	heartbeat  {time} NOT NULL,
	PRIMARY KEY (table_name, row_key)
)`

const upsert = `ON CONFLICT (table_name, row_key) DO UPDATE SET user_id = excluded.user_id, session = excluded.session,
		since = excluded.since, expiry = excluded.expiry, heartbeat = excluded.heartbeat`

// setReturning is the function set of a dialect that sets the lock and returns it in one statement.
func setReturning(
	ctx context.Context, q owned, t *Table, list string, key []any, others sqltext.Fragments,
) (rowState, error) {
	text, args := t.render("UPDATE {table} SET "+list+" WHERE {row} RETURNING {state}", key, others)
	return readState(ctx, q, text, args, nil, 0)
}
