package core

import (
	"context"
	"database/sql/driver"
	"errors"

	"github.com/sqlfence/sqlfence/internal/basedriver"
	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/guard"
)

// enforces reports whether the statement writes to an enforced table.
func (e *Execution) enforces() bool { return !e.registry.observed || e.writesTo(Enforce) }

// writesTo reports whether the statement writes to a table that is in the mode m.
func (e *Execution) writesTo(m Mode) bool {
	for i := range e.plan.Tables {
		if e.table(i).Mode == m {
			return true
		}
	}
	return false
}

// tolerates reports whether all tables of the statement are observed, so that a refusal isn't returned to the
// application. Then it keeps a WouldRefuse event with the reason, and the statement continues with its other guards.
func (e *Execution) tolerates(reason error) bool {
	if e.enforces() {
		return false
	}
	e.note(e.refusal(WouldRefuse, reason))
	return true
}

// withoutObserved builds the guard of a refused statement again, as if the observed tables weren't registered. If the
// statement isn't refused again, the reason for the first refusal is only reported to observers.
func (e *Execution) withoutObserved(ctx context.Context, reason error) (outcome, error) {
	would := e.refusal(WouldRefuse, reason)
	decided, err := e.enforceOnly(ctx)
	if decided != refused {
		e.note(would)
	}
	return decided, err
}

// enforceOnly restarts the execution with the enforced tables only.
func (e *Execution) enforceOnly(ctx context.Context) (outcome, error) {
	s := e.conn.settings
	e.sent, e.log = e.read.Request, eventLog{}
	e.with, e.read.keeps, e.read.planKind = guards{}, false, guard.Reading(e.read.planKind.Escapes())
	if s.enforced == nil {
		return passed, nil
	}
	e.registry = s.enforced
	e.plan = e.rewriter().PlanFor(e.read.Query, e.read.planKind)
	if e.read.unplanned == nil {
		e.read.unplanned = e.checkArguments()
	}
	if e.passes() {
		if err := e.readExecuted(ctx); err != nil {
			return refused, err
		}
	}
	if e.passes() {
		return passed, nil
	}
	return e.build(ctx)
}

// refusePrepared reports that a statement can't be prepared, and returns the reason. It returns nil if only observed
// tables are the reason, because each execution reports the reason.
func (e *Execution) refusePrepared(ctx context.Context, reason error) error {
	switch s := e.conn.settings; {
	case s.enforced == nil:
		return nil
	case s.observes():
		e.registry = s.enforced
		e.plan = e.rewriter().PlanFor(e.request.Query, guard.Reading(e.read.planKind.Escapes()))
		e.refuseExecuted()
		if e.plan.Verdict != guard.Refuse {
			return nil
		}
		reason = s.enforced.refused(&e.plan.Refusal)
	}
	e.report(ctx, e.refusal(Refused, reason))
	return reason
}

// observe runs a guarded execution without refusing or breaking a write to an observed table. It sends the guarded
// statement first and, if that fails, the original statement. A failed attempt has no effects. If an error would end a
// transaction, observe sets a savepoint before the attempt.
func observe[T any](ctx context.Context, e *Execution, c Call[T]) (got T, err error) {
	s := e.conn
	if e.enforces() {
		if err := e.linked(ctx); err != nil {
			return got, err
		}
	}
	saved, err := s.savepoint(ctx)
	if err != nil {
		return got, err
	}
	began := e.begin()
	send := try[T]
	if s.session.LocksAlone {
		send = tryLocked[T]
	}
	got, err = send(ctx, e, c)
	err = e.outdated(err)
	left := e.undo(ctx, err, saved)
	switch {
	case err == nil:
		e.end(began)
		if saved && !e.rows && !s.session.Leaks { // open rows keep the connection busy
			err = s.exec(ctx, "RELEASE SAVEPOINT sqlfence")
		}
	case left != nil:
		err = left
		if e.enforces() {
			var raised bool
			if err, raised = e.outcomeError(ctx, err); raised {
				return got, err
			}
		}
	case e.enforces():
		return enforceAlone(ctx, e, c, err)
	default:
		got, err = relent(ctx, e, c, err)
	}
	e.reportSent(ctx, err)
	return got, err
}

// enforceAlone sends a statement that failed with err once more, with the guards of the enforced tables only.
func enforceAlone[T any](ctx context.Context, e *Execution, c Call[T], err error) (T, error) {
	var nothing T
	typed, raised := e.classifyError(err)
	if !raised {
		typed = e.explain(ctx, err)
	}
	would := e.refusal(WouldRefuse, typed)
	decided, reason := e.enforceOnly(ctx)
	if decided == refused {
		e.report(ctx, e.refusal(Refused, reason))
		return nothing, reason
	}
	got, err := enforce(ctx, e, c)
	if err == nil {
		would.Sent = e.sent.Query
		e.conn.settings.report(ctx, would)
	}
	return got, err
}

// relent sends the application's statement unguarded after the guarded statement failed with err. All tables of the
// statement are observed.
func relent[T any](ctx context.Context, e *Execution, c Call[T], err error) (T, error) {
	why, refused := e.classifyError(err)
	if refused {
		e.note(e.refusal(WouldRefuse, why))
	} else {
		why = e.explain(ctx, err) // before the next statement is sent
	}
	e.sent = e.read.Request
	noted := len(e.log.events)
	got, errPlain := try(ctx, e, c)
	e.log.events = e.log.events[:noted] // only the first reason is reported
	switch {
	case errors.Is(errPlain, driver.ErrBadConn): // database/sql must not send the statement again
		return got, err
	case errPlain == nil && !refused:
		e.note(e.refusal(WouldRefuse, why))
	}
	return got, errPlain
}

// savepoint sets a savepoint if an error would end the transaction, or if a COMMIT would send undone changes to other
// servers (docs/galera.md), and reports whether it did. If the transaction ended unnoticed, the server's error shows
// it. An error means that the server already rolled the transaction back because of an earlier error.
func (s *Conn) savepoint(ctx context.Context) (saved bool, _ error) {
	ends := s.settings.profile.Session.ErrorEndsTx.Is() || s.session.Leaks
	if !s.inTx || !ends || s.mustRollBack != nil {
		return false, nil
	}
	err := s.exec(ctx, "SAVEPOINT sqlfence")
	if dberr.SQLState(err) == dberr.NoActiveTransaction {
		s.inTx = false
	}
	if s.mustRollBack != nil {
		return false, err
	}
	return err == nil, nil
}

// undo rolls back to the savepoint that [Conn.savepoint] has set, if saved is true, after a statement failed with err.
// If undo returns nil although err isn't nil, the statement can be run once more: it changed nothing, and its
// transaction is unchanged. Otherwise undo returns the application's error: err, or the error of the rollback.
func (e *Execution) undo(ctx context.Context, err error, saved bool) error {
	switch {
	case err == nil, basedriver.IsSkip(err), errors.Is(err, driver.ErrBadConn), ctx.Err() != nil:
		return err
	case dberr.IsPassing(err): // an error such as a deadlock, which the guard hasn't caused
		return err
	}
	_, byGuard := e.classifyError(err)
	if s := e.conn; !saved && s.session.Leaks && s.textBegan(ctx) {
		return err
	}
	left := e.conn.settings.profile.Errors.LeftNothing(dberr.Failure{
		Err:     err,
		Query:   e.request.Query,
		ByGuard: byGuard,
		InTx:    e.conn.inTx,
		Saved:   saved,
		Aborts:  e.plan.Aborts,
	})
	if !left {
		return err
	}
	if !saved {
		return nil
	}
	failed := e.conn.exec(ctx, "ROLLBACK TO SAVEPOINT sqlfence")
	if failed != nil && e.conn.mustRollBack == nil {
		return err
	}
	return failed
}
