package sqlfence

import (
	"cmp"
	"errors"
	"fmt"
)

// ErrNotSetUp: the database lacks a column, a table of sqlfence's own, or a privilege. Nothing was changed.
var ErrNotSetUp = errors.New("sqlfence: the database is not set up")

// A SetupError has the details of an [ErrNotSetUp].
type SetupError struct {
	refusedAsNotSetUp

	Missing string // such as "column fence_token of table books"

	// SQL adds what is missing. A GRANT names the session's role, or <role> if the error has ended the transaction.
	SQL string

	// Remedy, if not empty, is advice that replaces SQL.
	Remedy string

	Err error // the base driver's error; nil if nothing was sent
}

func (e *SetupError) Error() string {
	text := fmt.Sprintf("%v: missing %s; %s", ErrNotSetUp, e.Missing, cmp.Or(e.Remedy, "run: "+e.SQL))
	if e.Err == nil {
		return text
	}
	return fmt.Sprintf("%s: %v", text, e.Err)
}

func (e *SetupError) Unwrap() error { return e.Err }
