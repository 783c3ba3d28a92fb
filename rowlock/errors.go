package rowlock

import (
	"errors"
	"fmt"

	"github.com/sqlfence/sqlfence"
)

// ErrNotHeld: the user who renews the lock doesn't hold it, and nobody else does.
// [Table.Request] can take it.
var ErrNotHeld = errors.New("rowlock: the user does not hold the lock")

// An invalidError says which argument can't be used. errors.Is finds
// [sqlfence.ErrInvalid] in it.
type invalidError struct{ err error }

// invalid returns an invalidError with a formatted text.
func invalid(format string, args ...any) error {
	return &invalidError{fmt.Errorf(format, args...)}
}

func (e *invalidError) Error() string        { return "rowlock: " + e.err.Error() }
func (e *invalidError) Unwrap() error        { return e.err }
func (e *invalidError) Is(target error) bool { return target == sqlfence.ErrInvalid }

// errGone says which row there is none of.
func errGone(table string, id any) error {
	return fmt.Errorf("%w: table %q, key %v", sqlfence.ErrGone, table, id)
}

// isRefusal reports whether err says that the row's state doesn't allow what was asked
// for. That is a result, and no failure.
func isRefusal(err error) bool {
	for _, refusal := range []error{sqlfence.ErrGone, sqlfence.ErrConflict, sqlfence.ErrLocked, ErrNotHeld} {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return false
}
