package rowlock

import (
	"errors"
	"fmt"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
)

// ErrNotHeld: neither the user who renews the lock nor another user holds it. [Table.Request] can take it.
var ErrNotHeld = errors.New("rowlock: the user does not hold the lock")

// invalid returns an error that says which argument can't be used.
func invalid(format string, args ...any) error {
	return dialectopt.Invalid("rowlock", fmt.Errorf(format, args...))
}

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
