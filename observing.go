package sqlfence

//lint:file-ignore SA1019 base drivers may have nothing newer than what is deprecated

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"strings"

	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/rewrite"
)

// observe runs an attempt so that nothing is refused and nothing breaks: as in
// Enforce mode first; if the guard refuses it, again without what refuses; and if
// that or anything else fails, as the application wrote it. What failed has no
// effects. In a transaction of PostgreSQL, which an error would end, a savepoint
// is put before it.
func observe[T any](ctx context.Context, g *guard, a attempt, run func(*attempt) (T, error)) (T, error) {
	saved := g.savepoint(ctx)
	got, err := run(&a)
	if err == nil {
		if _, open := any(got).(driver.Rows); saved && !open {
			err = g.send(ctx, "RELEASE SAVEPOINT sqlfence")
		}
		return got, err
	}
	if !g.leftNothing(ctx, &a, err, saved) || saved && g.send(ctx, toSavepoint) != nil {
		return got, err
	}
	typed := a.explain(err)
	refused := typed != err // is it the same error?
	if refused {
		g.fence.report(ctx, Event{Kind: WouldRefuse, Query: a.query, Err: typed})
		if a.observe(typed) == nil {
			got, errObserved := run(&a)
			if errObserved == nil {
				return got, nil
			}
			if !g.leftNothing(ctx, &a, errObserved, saved) || saved && g.send(ctx, toSavepoint) != nil {
				return got, errObserved
			}
		}
	}
	a.sql, a.args, a.moved = a.text, a.own, a.rewritten
	got, errPlain := run(&a)
	switch {
	case errors.Is(errPlain, driver.ErrBadConn): // database/sql must not send again what was sent before
		return got, err
	case errPlain == nil && !refused:
		g.fence.report(ctx, Event{Kind: WouldRefuse, Query: a.query, Err: err})
	}
	return got, errPlain
}

const toSavepoint = "ROLLBACK TO SAVEPOINT sqlfence"

// savepoint sets one if an error would end the transaction, and reports whether it
// did. Statements may have ended that transaction unseen; the server knows.
func (g *guard) savepoint(ctx context.Context) bool {
	if !g.inTx || g.fence.profile.dialect != Postgres {
		return false
	}
	err := g.send(ctx, "SAVEPOINT sqlfence")
	if dberr.SQLState(err) == dberr.NoActiveTransaction {
		g.inTx = false
	}
	return err == nil
}

// leftNothing reports whether a statement that failed with err can be run once
// more: it has changed nothing, and its transaction is as it was. That is so if the
// server failed, not if the driver can't read what the server answered. In SQLite rows
// may stay changed, or the transaction be undone, by OR FAIL and OR ROLLBACK, also
// where a table declares them, and by the RAISE of a trigger.
func (g *guard) leftNothing(ctx context.Context, a *attempt, err error, saved bool) bool {
	switch {
	case err == driver.ErrSkip, errors.Is(err, driver.ErrBadConn), ctx.Err() != nil:
		return false
	case dberr.IsPassing(err): // the guard has no part in it
		return false
	case g.fence.profile.dialect == Postgres:
		return saved || !g.inTx && dberr.SQLState(err) != ""
	case a.explain(err) != err: // the guard's own never do
		return true
	}
	query := strings.ToLower(a.query)
	return dberr.LeftNothing(err, a.plan.Aborts && !a.values.Observe) && !strings.Contains(query, "fail") && !strings.Contains(query, "rollback")
}

// send executes a statement of ours on the base connection.
func (g *guard) send(ctx context.Context, query string) error {
	if c, ok := g.base.(driver.ExecerContext); ok {
		_, err := c.ExecContext(ctx, query, nil)
		return err
	}
	s, err := g.base.Prepare(query)
	if err != nil {
		return err
	}
	_, err = s.Exec(nil)
	return closing(s.Close, err)
}

func closing(close func() error, err error) error {
	if closeErr := close(); err == nil {
		return closeErr
	}
	return err
}

// readAhead reads the first row, with which a refusal comes at the latest. If a
// versioned statement has none, the row that it is for is gone. In Observe mode any
// error has to be known before the first row is given out.
func (r *result) readAhead(rows driver.Rows, err error) (driver.Rows, error) {
	if err != nil {
		return rows, err
	}
	columns := rows.Columns()
	row := make([]driver.Value, len(columns))
	err = rows.Next(row)
	observes := r.guard.fence.mode == Observe && err != io.EOF
	if err != nil && (observes || r.attempt.explain(err) != err) { // is it the same error?
		return failedRows{columns, err}, closing(rows.Close, err)
	}
	if err == io.EOF && r.attempt.plan.Versioned {
		if gone := r.attempt.gone(r.ctx); gone != nil {
			return nil, closing(rows.Close, gone)
		}
	}
	r.ahead, r.row, r.err = true, row, err
	return rows, nil
}

// failedRows are the rows of a query that failed with the first of them, where the
// application is to find the error: they hold nothing else.
type failedRows struct {
	columns []string
	err     error
}

// Columns implements driver.Rows.
func (r failedRows) Columns() []string { return r.columns }

// Next implements driver.Rows.
func (r failedRows) Next([]driver.Value) error { return r.err }

// Close implements driver.Rows.
func (r failedRows) Close() error { return nil }

// followTx follows transactions that are begun and ended by statements: by one
// that ended with err. Only Observe mode on PostgreSQL has to know. In doubt there
// is one: the next savepoint tells.
func (g *guard) followTx(query string, err error) {
	switch {
	case err == driver.ErrSkip || !g.follows(): // it comes again, prepared
	case err == nil:
		g.inTx = rewrite.InTransaction(Postgres, query, g.inTx)
	default: // how far it got isn't known
		g.inTx = g.inTx || g.followsTx(query)
	}
}

func (g *guard) follows() bool {
	return g.fence.mode == Observe && g.fence.profile.dialect == Postgres
}

// followsTx reports whether the statement begins or ends transactions, and that
// has to be followed.
func (g *guard) followsTx(query string) bool {
	return g.follows() && (rewrite.InTransaction(Postgres, query, false) || !rewrite.InTransaction(Postgres, query, true))
}
