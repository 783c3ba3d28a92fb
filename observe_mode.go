package sqlfence

import (
	"context"
	"database/sql/driver"
	"errors"

	"github.com/sqlfence/sqlfence/internal/dberr"
)

// observe runs a guarded execution so that nothing is refused and nothing breaks: as
// in Enforce mode first; if the guard refuses it, again without the checks that refuse;
// and if that or anything else fails, as the application wrote it. A failed attempt has no
// effects. If an error would end a transaction, a savepoint is set before the attempt.
func observe[T any](ctx context.Context, e *execution, c call[T]) (T, error) {
	s := e.state
	saved := s.savepoint(ctx)
	got, err := try(ctx, e, c)
	if err == nil {
		if saved && !e.rows { // open rows keep the connection busy
			err = s.exec(ctx, "RELEASE SAVEPOINT sqlfence")
		}
		return got, err
	}
	e.lostFunction(err)
	if !e.undo(ctx, err, saved) {
		return got, err
	}
	typed, refused := e.classify(err)
	if refused {
		s.settings.report(ctx, Event{Kind: WouldRefuse, Query: e.asked.query, Err: typed})
		if e.unguard(typed) == nil {
			got, errObserved := try(ctx, e, c)
			if errObserved == nil || !e.undo(ctx, errObserved, saved) {
				return got, errObserved
			}
		}
	}
	e.sent = e.read
	got, errPlain := try(ctx, e, c)
	switch {
	case errors.Is(errPlain, driver.ErrBadConn): // database/sql must not send again what was sent before
		return got, err
	case errPlain == nil && !refused:
		s.settings.report(ctx, Event{Kind: WouldRefuse, Query: e.asked.query, Err: e.explain(err)})
	}
	return got, errPlain
}

// unguard renders the statement without the checks that refuse, after it was refused for
// a reason. The token stored in a row doesn't rise to one that was never issued, or it
// would be above all that are.
func (e *execution) unguard(reason error) error {
	if errors.Is(reason, ErrNotIssued) {
		e.held.drop()
	}
	e.values.Observe = true
	return e.write()
}

// savepoint sets one if an error would end the transaction, and reports whether it
// did. Statements may have ended that transaction unnoticed; the server knows.
func (s *connState) savepoint(ctx context.Context) bool {
	if !s.inTx || !s.settings.profile.errorEndsTx() {
		return false
	}
	err := s.exec(ctx, "SAVEPOINT sqlfence")
	if dberr.SQLState(err) == dberr.NoActiveTransaction {
		s.inTx = false
	}
	return err == nil
}

// undo returns to the savepoint, if there is one, after a statement failed with err,
// and reports whether the statement can be run once more: it has changed nothing,
// and its transaction is as it was.
func (e *execution) undo(ctx context.Context, err error, saved bool) bool {
	switch {
	case isSkip(err), errors.Is(err, driver.ErrBadConn), ctx.Err() != nil:
		return false
	case dberr.IsPassing(err): // the guard has no part in it
		return false
	}
	_, byGuard := e.classify(err)
	left := e.state.settings.profile.leftNothing(failure{
		err:     err,
		query:   e.asked.query,
		byGuard: byGuard,
		inTx:    e.state.inTx,
		saved:   saved,
		aborts:  e.plan.Aborts && !e.values.Observe,
	})
	return left && (!saved || e.state.exec(ctx, "ROLLBACK TO SAVEPOINT sqlfence") == nil)
}
