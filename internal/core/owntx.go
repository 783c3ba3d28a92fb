package core

import (
	"context"
	"database/sql/driver"
	"errors"

	"github.com/sqlfence/sqlfence/internal/basedriver"
)

// tryLocked is try after lockFirst, on a server with [session.Capabilities].LocksAlone.
func tryLocked[T any](ctx context.Context, e *Execution, c Call[T]) (got T, err error) {
	begun, err := e.lockFirst(ctx)
	switch {
	case err == nil:
		got, err = try(ctx, e, c)
	case !basedriver.IsSkip(err):
		e.conn.FollowRollback(err)
		err = unsent{err}
	}
	if begun {
		err = e.conn.endOwnTx(ctx, err)
	}
	return got, err
}

// unsent is an error of a statement that wasn't sent, because a query before it failed.
type unsent struct{ error }

func (e unsent) Unwrap() error { return e.error }

// lockFirst locks the rows of other tables with which the guard compares the statement's tokens, on a server where the
// guard itself can't do so ([session.Capabilities].LocksAlone). Only a transaction keeps the locks. If none is open,
// lockFirst begins one, which endOwnTx must end, and returns true.
func (e *Execution) lockFirst(ctx context.Context) (begun bool, err error) {
	s := e.conn
	if !e.locksOther() {
		return false, nil
	}
	queries, err := e.plan.LockQueries(e.values())
	if err != nil || len(queries) == 0 {
		return false, err
	}
	if e.sent.Stmt == nil && len(e.sent.Args) > 0 {
		return false, driver.ErrSkip // most drivers would return it after BEGIN
	}
	// A statement may have ended the transaction of BeginTx, or begun one unseen.
	open, err := s.value(ctx, s.settings.profile.Session.OpenTx)
	if err == nil && open != "1" {
		begun, s.pending = true, true // even in a transaction of BeginTx, because that transaction has ended
		err = s.exec(ctx, s.settings.profile.Session.BeginTx)
	}
	for i := 0; err == nil && i < len(queries); i++ {
		_, err = s.value(ctx, queries[i])
	}
	return begun, err
}

// value returns the first value of a query that must return one row.
func (s *Conn) value(ctx context.Context, query string) (string, error) {
	rows, err := (*queryable)(s).Query(ctx, query)
	switch {
	case err != nil:
		return "", err
	case len(rows) != 1:
		return "", errNoReply
	}
	return rows[0][0], nil
}

var errNoReply = errors.New("sqlfence: the server returned no row for a query before the statement, so the statement " +
	"wasn't sent")

// endOwnTx ends the transaction of lockFirst after a statement that ended with err, and returns the statement's error.
func (s *Conn) endOwnTx(ctx context.Context, err error) error {
	if err == nil {
		err = s.exec(ctx, "COMMIT")
	}
	if err != nil && (ctx.Err() != nil || s.exec(ctx, "ROLLBACK") != nil) {
		s.endSession()
	}
	return err
}

// locksOther reports whether the guard compares tokens with rows of another table.
func (e *Execution) locksOther() bool {
	return e.find(func(t *Table) bool { return t.Rules.Ledger }) >= 0
}

// checkLocks refuses a statement of a multi-statement string: another statement could end the transaction.
func (e *Execution) checkLocks() error {
	if !e.locksOther() || e.plan.MultiStatement == 0 {
		return nil
	}
	return e.table(0).unguardable(nil, "on "+e.conn.session.Known+" a query before the statement locks what its guard "+
		"compares; send each statement of the text by itself")
}
