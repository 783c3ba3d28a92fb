package sqlfence

//lint:file-ignore SA1019 base drivers may have nothing newer than what is deprecated

import (
	"context"
	"database/sql/driver"
	"io"

	"github.com/sqlfence/sqlfence/rewrite"
)

// observe runs an attempt so that nothing is refused: as in Enforce mode first,
// and if the guard refuses it, again without what refuses. In a transaction of
// PostgreSQL, which an error would end, a savepoint is put before it.
func observe[T any](ctx context.Context, g *guard, a attempt, run func(*attempt) (T, error)) (T, error) {
	save := g.inTx && g.fence.profile.dialect == Postgres
	var none T
	if save {
		if err := g.send(ctx, "SAVEPOINT sqlfence"); err != nil {
			return none, err
		}
	}
	got, err := run(&a)
	if err == nil {
		if _, open := any(got).(driver.Rows); save && !open {
			err = g.send(ctx, "RELEASE SAVEPOINT sqlfence")
		}
		return got, err
	}
	typed := a.explain(err)
	if typed == err { // is it the same error?
		return got, err
	}
	if save {
		if err := g.send(ctx, "ROLLBACK TO SAVEPOINT sqlfence"); err != nil {
			return none, err
		}
	}
	g.fence.report(ctx, Event{Kind: WouldRefuse, Query: a.query, Err: typed})
	if err := a.observe(); err != nil {
		return none, err
	}
	return run(&a)
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
// versioned statement has none, the row that it is for is gone.
func (r *result) readAhead(rows driver.Rows, err error) (driver.Rows, error) {
	if err != nil {
		return rows, err
	}
	row := make([]driver.Value, len(rows.Columns()))
	err = rows.Next(row)
	if err != nil && r.attempt.explain(err) != err { // is it the same error?
		return nil, closing(rows.Close, err)
	}
	if err == io.EOF && r.attempt.plan.Versioned {
		if gone := r.attempt.gone(r.ctx); gone != nil {
			return nil, closing(rows.Close, gone)
		}
	}
	r.ahead, r.row, r.err = true, row, err
	return rows, nil
}

// followTx follows transactions that are begun and ended by statements: by one
// that ended with err. Only Observe mode on PostgreSQL has to know.
func (g *guard) followTx(query string, err error) {
	if err == driver.ErrSkip || !g.follows() { // it comes again, prepared
		return
	}
	in := rewrite.InTransaction(Postgres, query, g.inTx)
	g.inTx = in && (g.inTx || err == nil) // what failed has begun none
}

func (g *guard) follows() bool {
	return g.fence.mode == Observe && g.fence.profile.dialect == Postgres
}

// followsTx reports whether the statement begins or ends transactions, and that
// has to be followed.
func (g *guard) followsTx(query string) bool {
	return g.follows() && (rewrite.InTransaction(Postgres, query, false) || !rewrite.InTransaction(Postgres, query, true))
}
