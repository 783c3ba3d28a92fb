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

// A dialect is what package rowlock says to one database. The texts are SQL as for
// [sqltext.Builder], with the pieces of a [Table]; see newPieces.
type dialect struct {
	spelling

	// sendUpdate applies u in q if the row is free for it, and returns the row's state,
	// or sql.ErrNoRows if there is no row. Where it has applied u, the variables are set.
	sendUpdate func(ctx context.Context, q querier, t *Table, u lockUpdate) (rowState, error)

	// set has a row's lock be as a SET list says, whatever it was, and returns the row's
	// state, or sql.ErrNoRows if there is no row.
	set func(ctx context.Context, q querier, t *Table, list string, key []any, others sqltext.Pieces) (rowState, error)

	// several: these two send more than one statement. The others depend on the first then, so a
	// transaction holds them.
	several bool

	// abandoning calls send with a text that may wait for a lock, and ends it on the server if
	// ctx has ended before the answer came, unless the driver does.
	abandoning func(ctx context.Context, queue *cleanup.Queue, text string, send func(text string) error) error

	upsert string // behind an INSERT into rowlocks, to replace the row that is there
	create string // creates the table rowlocks if there is none
	unfit  string // a query for what is wrong with an existing one, or NULL; empty where nothing has to be looked for

	// lockRow keeps others from changing the row until the transaction's end; empty where the
	// transaction's own first write does.
	lockRow string

	// isolation is the lowest level at which each statement decides on the newest version of a row.
	isolation sql.IsolationLevel

	// wantsTime is the type that a time's column should be of, and isTime whether it may be of a type,
	// as listColumns yields it.
	wantsTime string
	isTime    func(typ string) bool

	listColumns  string // a query for each column's name, type, and whether it is NOT NULL
	hasUniqueKey string // a query for whether a unique index has all its columns among {keynames}
}

// A spelling is how a database writes values and columns.
type spelling struct {
	sqltext.Dialect

	// binary makes a value of a text, or of an integer, that is equal only to itself.
	binary func(expression string) string

	// stored makes of a value what a column of rowlocks has for it, and shown of a column what
	// is read.
	stored, shown func(string) string

	// same is a condition that a column has a value, of any type.
	same func(column, value string) string

	// equals compares a column of the row's key with a value by the operator of the column's type, which may be an
	// extension's.
	equals string

	// user is a user's ID as it is sent, for a column of integers or of texts.
	user func(id driver.Value) driver.Value

	version   string // {serial} as an integer, or as it is if that isn't known of a value
	versioned string // a condition that {serial} is an integer

	// keyText is the row's key as a JSON array, of {keycolumns}, with keyComma between two values. The
	// database writes it, so that one row has one text whatever Go type the key is given in.
	keyText, keyComma string
}

var dialects = dialectopt.For(&postgres, &sqlite, &mysql)

func asItIs(expression string) string        { return expression }
func equals(column, value string) string     { return column + " = " + value }
func plainUser(id driver.Value) driver.Value { return id }

// byTheDriver is abandoning where the driver ends the statement.
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

// setReturning is a set by one statement.
func setReturning(
	ctx context.Context, q querier, t *Table, list string, key []any, others sqltext.Pieces,
) (rowState, error) {
	text, args := t.render("UPDATE {table} SET "+list+" WHERE {row} RETURNING {state}", key, others)
	return readState(ctx, q, text, args, nil, 0)
}
