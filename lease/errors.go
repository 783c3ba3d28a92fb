package lease

import (
	"errors"
	"fmt"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/lost"
)

// Sentinel errors, for use with errors.Is. An error that is none of them comes from the
// database, the context or package sqlfence.
var (
	// ErrHeld: Acquire gave up because another holder has the lease.
	ErrHeld = errors.New("lease: held by another")

	// ErrNotHeld: no live lease has this lock id. It was never issued, or the lease was
	// released or has expired. Nothing was changed.
	ErrNotHeld = errors.New("lease: not held")

	// ErrLeaseLost: the lease ended before its holder released it. It is [sqlfence.ErrStale],
	// too, so that a loss is one error, whether the database has noticed it or this process.
	// The context of the lease ends with it as its [context.Cause].
	ErrLeaseLost = errors.New("lease: lost")

	// ErrReleased: the holder released the lease. The context of the lease ends with it
	// as its cause.
	ErrReleased = errors.New("lease: released")

	// ErrNotLeader: this process doesn't lead (see [Election]).
	ErrNotLeader = errors.New("lease: not the leader")

	// ErrNoSessions: an [Ephemeral] lease was asked for where no session can stand for its holder:
	// behind a pooler that hands the sessions of PostgreSQL from one client to another, as
	// PgBouncer does in its modes transaction and statement; where several servers write to one
	// database (Galera, or Group Replication with several primaries), as none sees the others'
	// sessions end; or in a pool of a single connection ([sql.DB.SetMaxOpenConns]), which the
	// session would keep. Nothing was changed. Take leases there that end with their ttl.
	ErrNoSessions = errors.New("lease: no session can stand for the holder of an ephemeral lease")

	// ErrInvalid: an invalid argument or option, such as an empty key. Nothing was sent to
	// the database. It is [sqlfence.ErrInvalid], too.
	ErrInvalid error = &invalidError{errors.New("lease: invalid argument")}
)

// A HeldError says who held the lease when Acquire gave up. It is [ErrHeld].
type HeldError struct {
	Key      string
	Holder   string    // the name that the holder gave by [Holder], or the id of [Resume]; may be empty
	Until    time.Time // when that lease ends by the server's clock unless it is extended; zero if unknown
	Attempts int       // how often this call asked; 0 if it only waited behind another that was told
}

func (e *HeldError) Error() string {
	by := ""
	if e.Holder != "" {
		by = fmt.Sprintf(" (%q)", e.Holder)
	}
	return fmt.Sprintf("%v%s: key %q (attempts: %d)", ErrHeld, by, e.Key, e.Attempts)
}

// Is reports whether target is [ErrHeld].
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// Temporary returns true: a later attempt can succeed.
func (e *HeldError) Temporary() bool { return true }

// A NotHeldError says which lock id has no live lease. It is [ErrNotHeld].
type NotHeldError struct {
	LockID string
	// Expired is true if the lease has expired and its row is still there. It is for
	// people: false may also mean that another holder has taken over.
	Expired bool
}

func (e *NotHeldError) Error() string {
	if e.Expired {
		return fmt.Sprintf("%v: the lease has expired", ErrNotHeld)
	}
	return fmt.Sprintf("%v: no lease has this lock id", ErrNotHeld)
}

// Is reports whether target is [ErrNotHeld].
func (e *NotHeldError) Is(target error) bool { return target == ErrNotHeld }

// Temporary returns false: a lease that has ended never becomes live again.
func (e *NotHeldError) Temporary() bool { return false }

// A LostError says which lease was lost. It is [ErrLeaseLost] and [sqlfence.ErrStale], and wraps the error that
// kept the lease from being extended, if there is one.
type LostError struct {
	Token  sqlfence.Token // its Name is the key
	Reason string         // for people

	err error
}

func (e *LostError) Error() string {
	text := fmt.Sprintf("%v: %s: %s", ErrLeaseLost, e.Token, e.Reason)
	if e.err != nil {
		text += ": " + e.err.Error()
	}
	return text
}

// Is reports whether target is [ErrLeaseLost] or [sqlfence.ErrStale].
func (e *LostError) Is(target error) bool {
	return target == ErrLeaseLost || target == sqlfence.ErrStale
}

// Unwrap returns the error of the last try to extend the lease, or nil. It isn't found to be
// [context.Canceled] or [context.DeadlineExceeded]: these would be the heartbeat's, not the
// caller's.
func (e *LostError) Unwrap() error {
	if e.err == nil {
		return nil
	}
	return lost.WithoutContext(e.err)
}

// Temporary returns false: a lost lease has to be acquired again.
func (e *LostError) Temporary() bool { return false }

// noSessions returns an [ErrNoSessions] with its reason.
func noSessions(reason string) error {
	return fmt.Errorf("%w: %s; leave out Ephemeral, so that the lease ends with its ttl", ErrNoSessions, reason)
}

// errTiDB: a statement of the server's is evaluated again behind a wait, and keeps the LAST_INSERT_ID of the time
// before.
var errTiDB = errors.New("leases are not known to hold on TiDB; take a lock of another service, and adopt its tokens " +
	"(docs/tidb.md)")

var (
	errPeers  = noSessions("several servers write to the database, and none sees the sessions of the others")
	errPooled = noSessions("a pooler hands the database's sessions from one client to another")
	errSingle = noSessions("the pool has a limit of one connection, and the session needs one beside those that " +
		"leases are taken by")
)

// An invalidError is [ErrInvalid] with the text of another error.
type invalidError struct{ error }

func (*invalidError) Is(target error) bool {
	return target == ErrInvalid || target == sqlfence.ErrInvalid
}

func (e *invalidError) Unwrap() error { return e.error }

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
}
