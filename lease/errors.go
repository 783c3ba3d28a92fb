package lease

import (
	"errors"
	"fmt"
	"time"

	"github.com/sqlfence/sqlfence"
)

// The sentinels that errors.Is finds in what this package returns. An error
// with none of them is the database's own, or the context's.
var (
	// ErrHeld: the lease was not acquired, because another holds it.
	ErrHeld = errors.New("lease: held by another")

	// ErrNotHeld: no live lease has the lock id: it never did, it has been
	// released, or it has expired. Nothing was changed.
	ErrNotHeld = errors.New("lease: not held")

	// ErrLeaseLost: the lease ended before it was released. It is the cause of
	// the end of the lease's context.
	ErrLeaseLost = errors.New("lease: lost")

	// ErrReleased is the cause of the end of the context of a lease that its
	// holder has released.
	ErrReleased = errors.New("lease: released")

	// ErrInvalid: an argument that can't be meant, such as an empty key. Nothing
	// was sent to the database.
	ErrInvalid = errors.New("lease: invalid argument")
)

// A HeldError tells who held the lease when Acquire gave up. errors.Is finds
// [ErrHeld] in it.
type HeldError struct {
	Key      string
	Holder   string    // as the holder gave it by [Owner]; may be empty
	Until    time.Time // when that lease ends unless it is extended, by the server's clock; zero if unknown
	Attempts int       // how many statements this call sent; 0 if it waited in line behind another that had the answer
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

// A NotHeldError tells which lock id was refused. errors.Is finds [ErrNotHeld]
// in it.
type NotHeldError struct {
	LockID string
	// Expired: the lease was there, but too old. It is for people: false may
	// also mean that somebody has taken over since.
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

// Temporary returns false: a lease that has ended stays so.
func (e *NotHeldError) Temporary() bool { return false }

// A LostError tells which lease was lost. errors.Is finds [ErrLeaseLost] in it,
// errors.As finds what kept the lease from being extended, if that is known.
type LostError struct {
	Token  sqlfence.Token // its Name is the key
	Reason string

	err error
}

func (e *LostError) Error() string {
	text := fmt.Sprintf("%v: %s: %s", ErrLeaseLost, e.Token, e.Reason)
	if e.err != nil {
		text += ": " + e.err.Error()
	}
	return text
}

// Is reports whether target is [ErrLeaseLost].
func (e *LostError) Is(target error) bool { return target == ErrLeaseLost }

// Unwrap returns the error of the last try to extend the lease, if there was one.
func (e *LostError) Unwrap() error { return e.err }

// Temporary returns false: a lost lease has to be acquired anew.
func (e *LostError) Temporary() bool { return false }

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
}
