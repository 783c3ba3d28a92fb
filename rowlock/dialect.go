package rowlock

import (
	"context"
	"database/sql"

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

	// timeType is the type of a time's column in a CREATE TABLE.
	timeType() string

	// checkTime returns which type a time's column should be of, and empty if it may be
	// of the type typ, as listColumns yields it.
	checkTime(typ string) (want string)

	// listColumns is a query for each column's name, type, and whether it is NOT NULL.
	listColumns() string

	// hasUniqueKey is a query for whether a unique index has all its columns among
	// {keynames}.
	hasUniqueKey() string
}

var dialects = dialectopt.For[dialect](postgres{sqltext.Postgres}, sqlite{sqltext.SQLite}, nil)
