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

// A dialect is how one database keeps leases. Times in rows are microseconds since 1970, and durations are
// microseconds. A database lacks what has an empty text, or a function that is nil.
type dialect struct {
	sqltext.Dialect
	server *facts.Dialect // how its server is asked about itself

	create   string // creates the table if there is none
	addMarks string // adds the column that waiters for notifications need, which an older table lacks

	// createIndex creates the index on expires_at, and hasIndex is a query with a row if there is such an index.
	createIndex, hasIndex string

	procedures, hasProcedures string // creates those of [WithProcedures], and finds them

	// probe fails if take would, with waits also a take that is going to wait for a notification. It changes nothing.
	probe func(ctx context.Context, db *database, waits bool) error

	// take makes one attempt and stores the outcome in o. If the lease has the request's lock id already, an earlier
	// take got the lease and its answer was lost: then the outcome is this lease.
	take func(ctx context.Context, db *database, r *request, o *outcome) error

	// takeAll makes attempts at leases of different keys in one statement, and sets the outcomes that it settles. It
	// waits for no lock, and settles nothing that a lock or an unusual state keeps from it. ok is false if statements
	// can't be shared in this database.
	takeAll func(ctx context.Context, db *database, asked []*taking) (ok, committing bool, _ error)

	// writers is how many statements are worth sending at a time before the next calls share one.
	writers int

	// undo releases what a take of unknown outcome may have taken.
	undo func(key, lockID string) statement

	// extend returns a row if the lease is live: its end, and how long that is from now.
	extend func(lockID string, ttl time.Duration) statement

	// release returns a row if the lease was live: its key. In the table the lease then has no lock id, and release as
	// its holder; or, until hold after it was acquired, release as its lock id, and no holder. With notify it wakes the
	// listeners, and the row has one more column.
	release func(lockID, release string, hold time.Duration, notify bool) statement

	// releaseAll releases leases in one statement, without waiting for a lock, and sets the keys of those that it has
	// released. committing is as in an outcome.
	releaseAll func(ctx context.Context, db *database, all []*releasing, notify bool) (committing bool, _ error)

	// released returns the key of the lease that this release has ended, until another holder takes it.
	released func(release string) statement

	// list returns the live leases, by key, or the one with a value in a column (key or lock_id): key, lock id, holder,
	// token, since when, until when, whether ephemeral.
	list func(column, value string) statement

	// ended returns a row if there is a lease with the lock id, live or not.
	ended func(lockID string) statement

	sweep statement // removes the rows of leases that have ended

	// session locks and unlocks the number of a session.
	session func(id int64) (lock, unlock statement)

	// owned marks a session, and returns whether the session that executes it has the mark. A database has none if no
	// pooler is known that hands a session with a lock to other clients.
	owned func(mark string) (set, get statement)
}

var dialects = dialectopt.For(postgres, sqlite, mysql)

// A statement is one text with its arguments. It is atomic, together with those before it.
type statement struct {
	text string
	args []any

	before []string       // sent first, only in a transaction
	tx     *sql.TxOptions // of its transaction; nil for none

	// alone does the same without a transaction. If alone changes a row, answer replaces the transaction.
	alone, answer string
}

// createIndex is for list, because few of all leases are live.
const createIndex = "CREATE INDEX IF NOT EXISTS fencing_leases_expires_at ON fencing_leases (expires_at)"

var pieces = sqltext.Pieces{"max": sqltext.Raw(strconv.FormatInt(sqlfence.MaxToken, 10))}

func render(d sqltext.Dialect, text string, own ...sqltext.Pieces) string {
	text, _ = sqltext.Render(d, text, append(own, pieces)...)
	return text
}
