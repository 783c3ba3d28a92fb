package core

import (
	"context"
	"strings"

	"github.com/sqlfence/sqlfence/internal/basedriver"
	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/session"
)

// enforce sends an execution with enforced guards once. A [session.CachedFact] decides how a guard is written. If an
// error disproves it, the error is temporary, and the next execution queries the fact again.
func enforce[T any](ctx context.Context, e *Execution, c Call[T]) (got T, err error) {
	if err := e.linked(ctx); err != nil {
		return got, err
	}
	began := e.begin()
	got, sent, err := attempt(ctx, e, c)
	if err == nil {
		e.conn.adapter.Touch()
		e.end(began)
		e.reportSent(ctx, nil)
		return got, nil
	}
	switch err = e.outdated(err); {
	case basedriver.IsSkip(err): // the driver executed nothing: database/sql prepares the statement next
		return got, err
	case !sent:
		err, _ = e.reported(ctx, err)
		return got, err
	}
	err, raised := e.outcomeError(ctx, e.staleFirst(ctx, err))
	if !raised {
		e.reportSent(ctx, err)
	}
	return got, err
}

// attempt prepares the statement, if it is sent prepared, and sends it. If sent is false, nothing was executed.
func attempt[T any](ctx context.Context, e *Execution, c Call[T]) (got T, sent bool, err error) {
	if err := c.Prepare(ctx, e); err != nil {
		e.conn.FollowRollback(err)
		return got, false, err
	}
	send := try[T]
	if e.conn.session.LocksAlone {
		send = tryLocked[T]
	}
	if got, err = send(ctx, e, c); err != nil && !basedriver.IsSkip(err) {
		c.Failed(e, err)
	}
	return got, true, err
}

// outdated forgets the cached fact that err disproves, and returns err as a temporary error. If err disproves no fact,
// outdated returns err unchanged.
func (e *Execution) outdated(err error) error {
	fact := e.conn.found.Wrong(err, session.Written{Query: e.sent.Query, PresentsToken: e.with.seals.presents,
		PresentsNone: e.with.seals.unsealed, MaySeal: e.maySeal})
	if fact == session.NoFact {
		return err
	}
	e.conn.found.Forget(fact)
	return &outdated{err, fact}
}

// outdated is the error of a guarded statement that was built from an outdated cached fact about the database.
type outdated struct {
	error
	fact session.CachedFact // the outdated fact; NoFact if the outdated fact is a table's unique keys
}

func (e *outdated) Unwrap() error { return e.error }

// Temporary returns true: sqlfence.Retry runs the transaction again.
func (e *outdated) Temporary() bool { return true }

// staleFirst lets a stale holder get ErrStale even if its statement failed with err, such as a duplicate key, before
// the guard was evaluated. For this it queries the guard's condition once more, if the database has understood the
// statement, and no transaction is open that err may have ended. A guard that is evaluated before the first row needs
// no such query.
func (e *Execution) staleFirst(ctx context.Context, err error) error {
	state := dberr.SQLState(err)
	switch s := e.conn; {
	case state == "", s.inTx, s.session.LocksAlone, !e.enforces(), e.Observes(), !s.settings.checksLedger:
		return err
	case strings.HasPrefix(state, dberr.ConstraintClass) && !e.plan.ChecksLate:
		return err
	case !isOfRow(state):
		return err
	}
	if _, raised := e.classifyError(err); raised {
		return err
	}
	question := e.plan.LedgerQuery(e.values())
	if question == "" {
		return err
	}
	_, refused := (*queryable)(e.conn).Query(ctx, question)
	if refused == nil {
		return err
	}
	if _, raised := e.classifyError(refused); !raised {
		return err // the query failed for another reason
	}
	return refused
}

// isOfRow reports whether an SQLSTATE is of a class that only rows, constraints and triggers of a statement cause,
// after the database has understood the statement.
func isOfRow(state string) bool {
	switch state[:min(2, len(state))] {
	case "0A", "08", "25", "26", "28", "3D", "3F", "40", "42", "53", "55", "57", "58", "F0", "XX":
		return false
	}
	return true
}
