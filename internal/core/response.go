package core

import (
	"context"
	"fmt"

	"github.com/sqlfence/sqlfence/internal/dberr"
)

// An adapter, which implements [Call] and [ConnAdapter] for database/sql or pgx, inspects the response to a guarded
// execution by the methods below.

// Adapter returns the connection that the execution is sent on.
func (e *Execution) Adapter() ConnAdapter { return e.conn.adapter }

// Sent returns the request to the base driver. [Call.Prepare] may set the request's Stmt.
func (e *Execution) Sent() *Request { return &e.sent }

// ArgCount returns the number of the application's arguments. All further arguments of Sent are the guard's.
func (e *Execution) ArgCount() int { return len(e.read.Args) }

// Explain returns the application's error if an operation for the execution, with ctx, failed with err.
func (e *Execution) Explain(ctx context.Context, err error) error { return e.conn.Explain(ctx, err) }

// ThrownByGuard reports whether the guard or a seal threw err.
func (e *Execution) ThrownByGuard(err error) bool {
	_, raised := e.classifyError(err)
	return raised
}

// InspectResult returns an error if the result of an Exec means that the statement wasn't fully executed: the driver
// may have stopped at the context's end, or a statement under WithSerial affected no row.
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

// LooksAhead reports whether the adapter must read the first row before the application gets the rows: the error of a
// guard for WithSerial, or of a seal, comes at the first row at the latest, and in Observe mode the statement may be
// sent again, unguarded, after any error. If a COMMIT follows the query (tryLocked), the adapter must close the rows.
func (e *Execution) LooksAhead() bool {
	return e.Observes() || e.plan.Versioned || e.writesSealed() || e.conn.session.LocksAlone
}

// InspectFirst checks the result of reading the first row: err, or end if there is no row. It returns the query's
// error, or nil if the rows go to the application unchanged.
func (e *Execution) InspectFirst(ctx context.Context, err error, end bool) error {
	switch {
	case end && e.plan.Versioned: // the statement's row is gone
		return e.gone(ctx)
	case err == nil || end:
		return nil
	case e.Observes() || e.ThrownByGuard(err):
		return err
	}
	return nil
}

// RowError returns the application's error if the rows of a guarded query failed with err. again: an earlier error of
// these rows was a refusal, so err isn't reported a second time.
func (e *Execution) RowError(ctx context.Context, err error, again bool) (_ error, refused bool) {
	e.conn.FollowRollback(err)
	if again {
		typed, _ := e.classifyError(err)
		return e.conn.Explain(ctx, typed), true
	}
	typed, raised := e.outcomeError(ctx, e.outdated(err))
	typed = e.conn.Explain(ctx, typed)
	e.reportFailure(ctx, typed)
	return typed, raised
}

// IsResponse reports whether err is a database error other than a constraint violation.
func (e *Execution) IsResponse(err error) bool {
	return e.conn.settings.profile.Errors.IsResponse(err) && !dberr.IsConstraint(err)
}

// Spare returns the sent argument list to the connection, which reuses it for the next execution.
func (e *Execution) Spare() { e.conn.takeBack(e.sent.Args) }
