package core

import (
	"context"
	"strings"

	"github.com/sqlfence/sqlfence/internal/basedriver"
	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/session"
)

// enforce sends an execution with guards that hold, once. What is known of the database decides how a guard is
// written; where the error says that something of it wasn't so, it is asked for before the next execution.
func enforce[T any](ctx context.Context, e *Execution, c Call[T]) (got T, err error) {
	if err := e.linked(ctx); err != nil {
		return got, err
	}
	began := e.begin()
	got, sent, err := attempt(ctx, e, c)
	if err == nil {
		e.conn.link.Touch()
		e.end(began)
		e.reportSent(ctx, nil)
		return got, nil
	}
	switch err = e.outdated(err); {
	case basedriver.IsSkip(err): // no refusal: it is prepared next
		return got, err
	case !sent:
		err, _ = e.reported(ctx, err)
		return got, err
	}
	err, raised := e.answered(ctx, e.staleFirst(ctx, err))
	if !raised {
		e.reportSent(ctx, err)
	}
	return got, err
}

// attempt prepares the statement, where it is to be sent prepared, and sends it. Unless it was sent, nothing of it
// was executed.
func attempt[T any](ctx context.Context, e *Execution, c Call[T]) (got T, sent bool, err error) {
	if err := c.Prepare(ctx, e); err != nil {
		return got, false, err
	}
	if got, err = try(ctx, e, c); err != nil && !basedriver.IsSkip(err) {
		c.Failed(e, err)
	}
	return got, true, err
}

// outdated returns err, and forgets the fact behind the statement's text that, by err, wasn't so: then it is temporary.
func (e *Execution) outdated(err error) error {
	fact := e.conn.found.Wrong(err, session.Written{Query: e.sent.Query, Proven: e.with.seals.proves,
		Unproven: e.with.seals.unsealed, MaySeal: e.maySeal})
	if fact == session.NoFact {
		return err
	}
	e.conn.found.Forget(fact)
	return &outdated{err, fact}
}

// outdated is the error of a guarded statement that was written by a fact which isn't so any more.
type outdated struct {
	error
	fact session.Fact // that isn't so; NoFact for another belief
}

func (e *outdated) Unwrap() error { return e.error }

// Temporary returns true: see [Retry].
func (e *outdated) Temporary() bool { return true }

// staleFirst returns the error of a guarded statement that failed with err: the guard's, if a
// holder that was replaced has met another error before its guard was asked. The database is
// asked once more, where that can tell: the statement was understood, and no transaction is
// over by the error. The guard of a plan that asks before the first row has been asked before
// any constraint.
func (e *Execution) staleFirst(ctx context.Context, err error) error {
	state := dberr.SQLState(err)
	switch s := e.conn; {
	case state == "", s.inTx, !e.enforces(), e.Observes(), !s.settings.asks:
		return err
	case strings.HasPrefix(state, dberr.ConstraintClass) && !e.plan.AsksLate:
		return err
	case !isOfRow(state):
		return err
	}
	if _, raised := e.classify(err); raised {
		return err
	}
	v := e.with.values
	v.Tables = e.with.held.values(e)
	question := e.plan.Question(v)
	if question == "" {
		return err
	}
	_, refused := (*asking)(e.conn).Query(ctx, question)
	if refused == nil {
		return err
	}
	if _, raised := e.classify(refused); !raised {
		return err // the question wasn't answered
	}
	return refused
}

// isOfRow reports whether an error is of a class that the rows, constraints and triggers of a
// statement have, which the database has understood.
func isOfRow(state string) bool {
	switch state[:min(2, len(state))] {
	case "0A", "08", "25", "26", "28", "3D", "3F", "40", "42", "53", "55", "57", "58", "F0", "XX":
		return false
	}
	return true
}
