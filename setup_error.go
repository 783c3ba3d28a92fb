package sqlfence

import (
	"errors"
	"fmt"
)

// ErrNotSetUp: the database lacks what a guard or one of sqlfence's packages needs: a
// column of a registered table, a table of sqlfence's own, or privileges on one. A
// [SetupError] says which, and the SQL that adds it. Nothing was changed.
var ErrNotSetUp = errors.New("sqlfence: the database is not set up")

// A SetupError reports a column, table or privilege that the database lacks. errors.Is(err, [ErrNotSetUp]) is
// true for it. If the statement was sent, Unwrap returns the base driver's error. In [Observe] mode, the event
// carries the SetupError, and the statement is sent as it was written.
type SetupError struct {
	refusedAsNotSetUp

	Missing string // such as "column fence_token of table books"

	// SQL adds it: ALTER TABLE, CREATE TABLE or GRANT. A GRANT names the session's role;
	// in a transaction that the error has ended, <role> stands for that.
	SQL string

	// Remedy, if it isn't empty, says what to do instead of SQL, or before SQL is thought of: one of sqlfence's tables
	// is, or may be, in another schema than those in which the session looks, and a second one would split what it
	// keeps; or Setup creates what is missing together with the rest; or a registered name is a view's or a virtual
	// table's, and no SQL adds a column there.
	Remedy string

	Err error // the base driver's; nil where nothing was sent
}

func (e *SetupError) Error() string {
	remedy := e.Remedy
	if remedy == "" {
		remedy = "run: " + e.SQL
	}
	text := fmt.Sprintf("%v: missing %s; %s", ErrNotSetUp, e.Missing, remedy)
	if e.Err == nil {
		return text
	}
	return fmt.Sprintf("%s: %v", text, e.Err)
}

// Unwrap returns the base driver's error.
func (e *SetupError) Unwrap() error { return e.Err }
