package orders_test

import (
	"errors"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/mattn/go-sqlite3"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// outcomeOf classifies an error. A refusal by sqlfence takes precedence over the wrapped error of the database.
func outcomeOf(err error) outcome {
	if err == nil {
		return done
	}
	var check refusedCheck
	if errors.As(err, &check) {
		return outcome(check)
	}
	for _, known := range []struct {
		err error
		is  outcome
	}{
		{sqlfence.ErrStale, stale},
		{sqlfence.ErrNotIssued, notIssued},
		{sqlfence.ErrConflict, conflict},
		{sqlfence.ErrGone, gone},
		{sqlfence.ErrLocked, locked},
		{lease.ErrNotHeld, lost},
		{errHeld, held},
	} {
		if errors.Is(err, known.err) {
			return known.is
		}
	}
	var temporary interface{ Temporary() bool }
	switch {
	case errors.As(err, &temporary) && temporary.Temporary() &&
		(errors.Is(err, sqlfence.ErrNoFence) || harness.SQLState(err) == "23514" || coded(err) == sealed): // another seal
		return resealed
	case errors.Is(err, sqlfence.ErrNoFence), errors.Is(err, sqlfence.ErrOutOfScope):
		return unfenced
	}
	return coded(err)
}

// coded classifies a database's own error.
func coded(err error) outcome {
	switch state := harness.SQLState(err); {
	case state == "40001":
		return serialization
	case state == "40P01":
		return deadlock
	case strings.HasPrefix(state, "23"):
		return constraint
	case strings.HasPrefix(state, "FT"):
		return sealed
	}
	var numbered *mysql.MySQLError
	if errors.As(err, &numbered) {
		switch n := numbered.Number; {
		case n == 1020:
			return serialization
		case n == 1213:
			return deadlock
		case slices.Contains([]uint16{1048, 1062}, n):
			return constraint
		case strings.HasPrefix(numbered.Message, "sqlfence: "):
			return sealed
		}
	}
	var lite sqlite3.Error
	if errors.As(err, &lite) {
		switch {
		case lite.ExtendedCode == sqlite3.ErrBusySnapshot:
			return serialization
		case lite.Code == sqlite3.ErrBusy:
			return busy
		case lite.Code == sqlite3.ErrConstraint:
			return constraint
		}
	}
	return unexpected
}
