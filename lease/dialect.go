package lease

import (
	"context"
	"database/sql"
	"strconv"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
	facts "github.com/sqlfence/sqlfence/internal/session"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// A dialect has the statements with which one kind of database keeps leases in the table fencing_leases. Times in rows
// are microseconds since 1970, and durations are microseconds. If a text is empty or a function is nil, the database
// lacks the feature.
type dialect struct {
	sqltext.Dialect
	server *facts.Dialect // the queries about the server and its settings

	create    string // creates the table if it is missing
	addNotify string // adds the column for waiters that want a notification, which a table of an older version lacks

	// createIndex creates the index on expires_at. hasIndex is a query that returns a row if the index exists.
	createIndex, hasIndex string

	// procedures creates the procedures of [WithProcedures]. hasProcedures is a query that returns a row if they exist.
	procedures, hasProcedures string

	// probe fails if a missing table, column or privilege would make take fail. With waits it also fails if a take that
	// waits for a notification would fail. probe changes nothing.
	probe func(ctx context.Context, db *database, waits bool) error

	// take tries once to take the lease of r, without waiting for its holder, and stores the outcome in o. If the lease
	// already has r's lock id, which is random, an earlier take got the lease and its response was lost: then the
	// outcome is this lease.
	take func(ctx context.Context, db *database, r *request, o *outcome) error

	// takeAll tries once to take leases of different keys, in one statement. It waits for no lock: if another
	// transaction has locked a lease's row, or the row is in an unusual state, takeAll leaves that lease's outcome
	// unset, and the caller sends take. ok is false if statements can't be shared in this database. committing is as in
	// [outcome].
	takeAll func(ctx context.Context, db *database, asked []*taking) (ok, committing bool, _ error)

	// writers is the number of statements under way before further calls wait and share the next statement.
	writers int

	// undo returns a statement that releases the lease of key if it has the lock id of a take with an unknown outcome.
	undo func(key, lockID string) statement

	// extend returns a statement that moves the end of a live lease to ttl from now. If the lease was live, the
	// statement returns a row: the lease's new end, and the time until then.
	extend func(lockID string, ttl time.Duration) statement

	// release returns a statement that ends a live lease. If the lease was live, the statement returns a row with the
	// lease's key. The ended lease's row keeps release, a random id of this statement: as its holder, without a lock
	// id. But until the time hold has passed since the lease was acquired, no holder can take the key: meanwhile
	// release is the row's lock id, and the holder is empty. With notify, the statement wakes the listeners, and its
	// row has one more column.
	release func(lockID, release string, hold time.Duration, notify bool) statement

	// releaseAll releases leases in one statement, without waiting for a lock, and sets the keys of the leases that it
	// has released. committing is as in [outcome].
	releaseAll func(ctx context.Context, db *database, all []*releasing, notify bool) (committing bool, _ error)

	// released returns a query for the key of the lease that a release with this random id has ended. The query returns
	// no row after another holder has taken the lease.
	released func(release string) statement

	// list returns a query for the live leases, ordered by key, or for the live lease with value in the column key or
	// lock_id. Its columns are key, lock id, holder, token, acquisition time, end, and whether the lease is ephemeral.
	list func(column, value string) statement

	// ended returns a query that has a row if the table has a lease with the lock id, live or not.
	ended func(lockID string) statement

	sweep statement // removes the rows of leases that have ended

	// session returns the statements that lock and unlock the advisory lock with the number id. It shows to other
	// sessions whether the session that has taken ephemeral leases is alive.
	session func(id int64) (lock, unlock statement)

	// identity returns a statement that stores a mark in a session, and a query for whether the session that executes
	// it has the mark: a pooler may have handed the session with its lock to another client. It is nil for a database
	// without such poolers.
	identity func(mark string) (set, get statement)
}

var dialects = dialectopt.For(postgres, sqlite, mysql)

// A statement is an SQL string with its arguments. It is executed atomically, together with the statements in before.
type statement struct {
	text string
	args []any

	before []string       // statements to send first; they need a transaction
	tx     *sql.TxOptions // options of the transaction for the statement; nil if the statement needs no transaction

	// alone is an SQL string with the same effect that needs no transaction. If alone changes a row, result is the
	// query for the result, and the transaction isn't begun.
	alone, result string

	// reset forgets the rows of an earlier attempt, which a failed COMMIT has rolled back; nil if scanning a row has no
	// lasting effect.
	reset func()
}

// createIndex creates the index that the query of list uses, because only few of all leases are live.
const createIndex = "CREATE INDEX IF NOT EXISTS fencing_leases_expires_at ON fencing_leases (expires_at)"

var fragments = sqltext.Fragments{"max": sqltext.Raw(strconv.FormatInt(sqlfence.MaxToken, 10))}

func render(d sqltext.Dialect, text string, own ...sqltext.Fragments) string {
	text, _ = sqltext.Render(d, text, append(own, fragments)...)
	return text
}
