package core

import (
	"context"
	"fmt"

	"github.com/sqlfence/sqlfence/internal/dberr"
)

// What an adapter asks about a guarded execution, to read its answer.

// Link returns the connection that the execution is sent on.
func (e *Execution) Link() Link { return e.conn.link }

// Sent returns what is sent. The adapter may set its Stmt, in [Call.Prepare].
func (e *Execution) Sent() *Request { return &e.sent }

// Given returns how many arguments the application has given; those that are sent beyond it are the guard's.
func (e *Execution) Given() int { return len(e.read.Args) }

// Explain returns the error that the application gets of what was done for the execution with ctx.
func (e *Execution) Explain(ctx context.Context, err error) error { return e.conn.Explain(ctx, err) }

// Raised reports whether the guard, or a seal, has raised err.
func (e *Execution) Raised(err error) bool {
	_, raised := e.classify(err)
	return raised
}

// InspectResult looks for a refusal in the answer to an Exec: affected returns the number of rows, as the driver
// counts them. It refuses the result of a statement that may not have been executed to its end, and that of
// a versioned one that reached no row.
func (e *Execution) InspectResult(ctx context.Context, res interface{ RowsAffected() (int64, error) }) error {
	if err := e.conn.muted(ctx); err != nil && e.enforces() {
		return err
	}
	if !e.plan.Versioned {
		return nil
	}
	switch n, err := res.RowsAffected(); {
	case err != nil && !e.enforces():
		return nil
	case err != nil:
		err = fmt.Errorf("sqlfence: the driver doesn't count affected rows, so whether the row exists is unknown: "+
			"%w", err)
		if !e.conn.inTx {
			return &unknownOutcome{err: err, resent: true}
		}
		return err
	case n > 0:
		return nil
	}
	return e.gone(ctx)
}

// LooksAhead reports whether the first row has to be read before the application gets the rows: a refusal of a
// versioned statement, or of a seal, comes no later than that; in Observe mode any error has to be known.
func (e *Execution) LooksAhead() bool { return e.Observes() || e.plan.Versioned || e.writesSealed() }

// InspectFirst looks for a refusal in the error that the rows had instead of a first row, or in their end. It returns
// the error that the query fails with; nil where the rows go to the application as they are.
func (e *Execution) InspectFirst(ctx context.Context, err error, end bool) error {
	switch {
	case end && e.plan.Versioned: // the row that the statement is for is gone
		return e.gone(ctx)
	case err == nil || end:
		return nil
	case e.Observes() || e.Raised(err):
		return err
	}
	return nil
}

// RowError returns the error that the application gets for one of the rows of a guarded query. again: the rows
// have been refused before, and may repeat it.
func (e *Execution) RowError(ctx context.Context, err error, again bool) (_ error, refused bool) {
	e.conn.FollowRollback(err)
	if again {
		typed, _ := e.classify(err)
		return e.conn.Explain(ctx, typed), true
	}
	typed, raised := e.answered(ctx, e.outdated(err))
	typed = e.conn.Explain(ctx, typed)
	e.reportFailure(ctx, typed)
	return typed, raised
}

// Answered reports whether err is the database's answer to a statement that failed for another reason than a
// constraint.
func (e *Execution) Answered(err error) bool {
	return e.conn.settings.profile.Answers.Answered(err) && !dberr.IsConstraint(err)
}

// Spare gives the list of arguments that was sent back, for the connection's next execution.
func (e *Execution) Spare() { e.conn.takeBack(e.sent.Args) }
