package sqlfence

import (
	"context"
	"strings"

	"github.com/sqlfence/sqlfence/internal/dberr"
)

// staleFirst returns the error of a guarded statement that failed with err: the guard's, if a
// holder that was replaced has met another error before its guard was asked. The database is
// asked once more, where that can tell: the statement was understood, and no transaction is
// over by the error. The guard of a plan that asks before the first row has been asked before
// any constraint.
func (e *execution) staleFirst(ctx context.Context, err error) error {
	state := dberr.SQLState(err)
	switch s := e.state; {
	case state == "", s.inTx, !e.enforces(), e.observes(), !s.settings.ledgers:
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
	_, refused := (*asking)(e.state).Query(ctx, question)
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
