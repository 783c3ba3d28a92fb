package rowlock

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"strings"

	my "github.com/sqlfence/sqlfence/internal/dialect/mysql"
	pg "github.com/sqlfence/sqlfence/internal/dialect/postgres"
	lite "github.com/sqlfence/sqlfence/internal/dialect/sqlite"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// A dialect is what package rowlock says to one database. The texts are SQL as for
// [sqltext.Builder], with the pieces of a [Table]; see newPieces.
type dialect interface {
	sqltext.Dialect

	// sendUpdate applies u in q if the row is free for it, and returns the row's state,
	// or sql.ErrNoRows if there is no row. Where it has applied u, the variables are set.
	sendUpdate(ctx context.Context, q querier, t *Table, u lockUpdate) (rowState, error)

	// set has a row's lock be as a SET list says, whatever it was, and returns the row's
	// state, or sql.ErrNoRows if there is no row.
	set(ctx context.Context, q querier, t *Table, list string, key []any, others sqltext.Pieces) (rowState, error)

	// severalStatements reports whether these two send more than one statement. The others depend
	// on the first then, so a transaction holds them.
	severalStatements() bool

	// abandoning calls send with a text that may wait for a lock, and ends it on the server if
	// ctx has ended before the answer came, unless the driver does.
	abandoning(ctx context.Context, db *sql.DB, text string, send func(text string) error) error

	// binary makes a value of a text, or of an integer, that is equal only to itself.
	binary(expression string) string

	// stored makes of a value what a column of rowlocks has for it, and shown of a column what
	// is read.
	stored(value string) string
	shown(column string) string

	// same is a condition that a column has a value, of any type.
	same(column, value string) string

	// user is a user's ID as it is sent, for a column of integers or of texts.
	user(id driver.Value) driver.Value

	// upsert is what stands behind an INSERT into rowlocks, to replace the row that is there.
	upsert() string

	// create creates the table rowlocks if there is none.
	create() string

	// unfit is a query for what is wrong with an existing table rowlocks, or NULL; empty where
	// nothing has to be looked for.
	unfit() string

	// version is {serial} as an integer, or as it is if that isn't known of a value.
	version() string

	// versioned is a condition that {serial} is an integer.
	versioned() string

	// keyText is the row's key as a JSON array, of {keycolumns}. The database writes it,
	// so that one row has one text whatever Go type the key is given in.
	keyText() string

	// keyComma is what that array has between two values.
	keyComma() string

	// lockRow is a statement that keeps others from changing the row until the
	// transaction's end; empty where the transaction's own first write does.
	lockRow() string

	// isolation is the lowest level at which each statement decides on the newest
	// version of a row.
	isolation() sql.IsolationLevel

	// checkTime returns which type a time's column should be of, and empty if it may be
	// of the type typ, as listColumns yields it.
	checkTime(typ string) (want string)

	// listColumns is a query for each column's name, type, and whether it is NOT NULL.
	listColumns() string

	// hasUniqueKey is a query for whether a unique index has all its columns among
	// {keynames}.
	hasUniqueKey() string
}

var dialects = dialectopt.For[dialect](postgres{pg.Text}, sqlite{lite.Text}, mysql{my.Text})

// createWith is the table with a type for times, as doc.go shows it.
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
