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

// A dialect is how one database keeps leases. Times in rows are microseconds since
// 1970, and durations are microseconds.
type dialect interface {
	text() sqltext.Dialect // what it says in SQL elsewhere
	facts() *facts.Dialect // how its server is asked about itself

	create() statement // creates the table if there is none
	index() statement  // creates the index on expires_at if there is none of its name

	// indexed returns a row if there is such an index, on PostgreSQL by whatever name.
	indexed() statement

	// procedures creates those of [WithProcedures], and finds them; without a text where there are none.
	procedures() (create, find statement)

	// marks adds the column that an older table is without and those need who wait for
	// notifications.
	marks() statement

	// probe fails if take would, with waits also one that is going to wait for a
	// notification. It changes nothing.
	probe(ctx context.Context, db *database, waits bool) error

	// take asks for a lease once, and says in o what it came to. If the lease has the request's
	// lock id already, an earlier take has got it and its answer was lost: that is the answer then.
	take(ctx context.Context, db *database, r *request, o *outcome) error

	// writers is how many statements are worth sending at a time before the next calls
	// share one.
	writers() int

	// takeAll asks for many leases at once, of different keys and without sessions, and says which
	// outcomes are settled. It waits for no lock: it leaves out the leases that it would have to
	// wait for, and those that are out of the ordinary. If statements can't be shared in this
	// database, ok is false.
	takeAll(ctx context.Context, db *database, asked []*taking) (ok, committing bool, _ error)

	// undo releases what a take of unknown outcome may have taken.
	undo(key, lockID string) statement

	// extend returns a row if the lease is live: when it ends, and how long that is from
	// now.
	extend(lockID string, ttl time.Duration) statement

	// release returns a row if the lease was live: its key. In the table it then has no lock id,
	// and release as its holder, to be found by that; or, until hold after it was acquired, release as its lock
	// id, and no holder. With notify it wakes the listeners if there
	// are waiters, and the row has one more column. On PostgreSQL the row has a column in front of
	// that.
	release(lockID, release string, hold time.Duration, notify bool) statement

	// releaseAll releases many leases at once, without waiting for a lock, and sets the keys of
	// those that it has released. committing is as in an outcome.
	releaseAll(ctx context.Context, db *database, all []*releasing, notify bool) (committing bool, _ error)

	// released returns the key of the lease that this release has ended, or is to end, until
	// another takes it.
	released(release string) statement

	// notifies reports whether listeners can be woken.
	notifies() bool

	// list returns the live leases, by key, or the one with a value in a column (key or lock_id):
	// key, lock id, holder, token, since when, until when, whether ephemeral.
	list(column, value string) statement

	// ended returns a row if there is a lease with the lock id, live or not.
	ended(lockID string) statement

	// sweep removes the rows of leases that have ended.
	sweep() statement

	// session returns what locks and unlocks the number of a session. It is not ok if the
	// database can't see a session end.
	session(id int64) (lock, unlock statement, ok bool)

	// owned returns what marks a session, and what returns whether the session that executes it has
	// the mark. There are none where no pooler is known that hands a session with a lock to others.
	owned(mark string) (set, get statement)
}

var dialects = dialectopt.For[dialect](postgres{}, sqlite{}, mysql{})

// A statement is one text with its arguments. Each is atomic in itself, as a transaction with
// those before it.
type statement struct {
	text string
	args []any

	before []string       // what comes first; only in a transaction
	tx     *sql.TxOptions // of the transaction that it is sent in; nil: alone

	// alone does the same by itself. Where it changes a row, answer comes behind it, if
	// there is one, in place of the transaction.
	alone, answer string
}

// createIndex is for list: of the leases that ever were, few are live.
const createIndex = "CREATE INDEX IF NOT EXISTS fencing_leases_expires_at ON fencing_leases (expires_at)"

// pieces are those that the texts of all dialects may name.
var pieces = sqltext.Pieces{"max": sqltext.Raw(strconv.FormatInt(sqlfence.MaxToken, 10))}

// render returns a text with its pieces written out.
func render(d sqltext.Dialect, text string, own ...sqltext.Pieces) string {
	text, _ = sqltext.Render(d, text, append(own, pieces)...)
	return text
}
