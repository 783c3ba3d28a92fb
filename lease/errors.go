package lease

import (
	"errors"
	"fmt"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/lost"
)

// The errors of this package.
var (
	// ErrHeld: another holder has the lease ([HeldError]).
	ErrHeld = errors.New("lease: held by another")

	// ErrNotHeld: no live lease has this lock id ([NotHeldError]).
	ErrNotHeld = errors.New("lease: not held")

	// ErrLeaseLost: the lease ended before the holder had released the lease ([LostError]).
	ErrLeaseLost = errors.New("lease: lost")

	// ErrReleased: the holder has released the lease.
	ErrReleased = errors.New("lease: released")

	// ErrNotLeader: this process isn't the leader ([NotLeaderError]).
	ErrNotLeader = errors.New("lease: not the leader")

	// ErrNoSessions: sessions can't be used for [Ephemeral]: a pooler shares them, there are several servers, or the
	// pool has one connection.
	ErrNoSessions = errors.New("lease: no session can stand for the holder of an ephemeral lease")

	// ErrInvalid: an argument or option is invalid. It is also [sqlfence.ErrInvalid].
	ErrInvalid error = &invalidError{errors.New("lease: invalid argument")}
)

// A HeldError reports which holder has the lease. It is [ErrHeld].
type HeldError struct {
	Key      string
	Holder   string    // may be empty
	Until    time.Time // end of the lease, by the server's clock; zero if unknown
	Attempts int       // number of attempts of this call
}

func (e *HeldError) Error() string {
	by := ""
	if e.Holder != "" {
		by = fmt.Sprintf(" (%q)", e.Holder)
	}
	until := ""
	if !e.Until.IsZero() {
		until = " until " + e.Until.UTC().Format(time.RFC3339) + " unless extended"
	}
	return fmt.Sprintf("%v%s%s: key %q (attempts: %d); try again later", ErrHeld, by, until, e.Key, e.Attempts)
}

func (e *HeldError) Is(target error) bool { return target == ErrHeld }

func (e *HeldError) Temporary() bool { return true }

// A NotHeldError reports that no live lease has the lock id. It is [ErrNotHeld].
type NotHeldError struct {
	LockID  string
	Expired bool // the lease expired; false if that is unknown
}

func (e *NotHeldError) Error() string {
	if e.Expired {
		return ErrNotHeld.Error() + ": the lease has expired, and another holder may have the key; acquire a new lease"
	}
	return ErrNotHeld.Error() + ": no live lease has this lock id: it has ended, or was never granted here; " +
		"acquire a new lease"
}

func (e *NotHeldError) Is(target error) bool { return target == ErrNotHeld }

// A LostError reports that a lease ended before its release: another process may hold the key. It is [ErrLeaseLost] and
// [sqlfence.ErrStale].
type LostError struct {
	Token  sqlfence.Token // its Name is the key
	Reason string

	err error
}

func (e *LostError) Error() string {
	text := fmt.Sprintf("%v: %s: %s: another holder may have taken over; stop working, and acquire a new lease",
		ErrLeaseLost, e.Token, e.Reason)
	if e.err != nil {
		text += ": " + e.err.Error()
	}
	return text
}

func (e *LostError) Is(target error) bool {
	return target == ErrLeaseLost || target == sqlfence.ErrStale
}

// Unwrap returns the last heartbeat's error, or nil.
func (e *LostError) Unwrap() error {
	if e.err == nil {
		return nil
	}
	return lost.WithoutContext(e.err)
}

func (e *LostError) Temporary() bool { return false }

func noSessions(reason string) error {
	return fmt.Errorf("%w: %s; leave out Ephemeral, so that the lease ends with its ttl", ErrNoSessions, reason)
}

var (
	errPeers  = noSessions("several servers write to the database, and none sees the sessions of the others")
	errPooled = noSessions("a pooler shares the database's sessions among its clients")
	errSingle = noSessions("the pool is limited to one connection, and the session of ephemeral leases needs a " +
		"second one (SetMaxOpenConns)")
)

type invalidError struct{ error }

func (*invalidError) Is(target error) bool {
	return target == ErrInvalid || target == sqlfence.ErrInvalid
}

func (e *invalidError) Unwrap() error { return e.error }

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
}
