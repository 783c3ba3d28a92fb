package sqlfence

//lint:file-ignore SA1019 base drivers may have nothing newer than what is deprecated

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"

	"github.com/ngrok/sqlmw"
)

// A guard stands between one connection and its base: guarded statements run
// through it. It is sqlmw's interceptor of what goes on after the call that
// began it: rows and transactions. Like its connection it is used by one
// goroutine at a time.
type guard struct {
	sqlmw.NullInterceptor
	fence   *fence
	base    driver.Conn
	through middleware // sqlmw's connection
	inTx    bool

	run func() (driver.Rows, error) // what a call of through.QueryContext does
}

var _ sqlmw.Interceptor = (*guard)(nil)

// middleware is what sqlmw's connection is used for.
type middleware interface {
	driver.QueryerContext
	driver.ConnBeginTx
}

func newGuard(f *fence, base driver.Conn) (*guard, error) {
	g := &guard{fence: f, base: base}
	c, err := sqlmw.Driver(opened{base}, g).Open("")
	if err != nil {
		return nil, err
	}
	through, ok := c.(middleware)
	if !ok {
		return nil, fmt.Errorf("sqlfence: sqlmw's connection %T lacks a method", c)
	}
	g.through = through
	return g, nil
}

// opened is a driver whose one connection is open already: the way to have
// sqlmw wrap a connection that a connector made. It has a QueryContext, without
// which sqlmw's doesn't call the interceptor.
type opened struct{ driver.Conn }

func (o opened) Open(string) (driver.Conn, error) { return o, nil }
func (o opened) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return nil, driver.ErrSkip
}

// exec runs a guarded statement by run.
func (g *guard) exec(ctx context.Context, a attempt, run func(*attempt) (driver.Result, error)) (driver.Result, error) {
	if g.fence.mode == Observe {
		res, err := observe(ctx, g, a, run)
		a.tell(ctx, err)
		if err == nil {
			_ = a.reached(ctx, res) // reports what it finds
		}
		return res, err
	}
	res, err := run(&a)
	if err != nil {
		return res, g.explain(ctx, &a, err)
	}
	return res, a.reached(ctx, res)
}

// query runs a guarded statement that returns rows. sqlmw wraps these rows, so
// that a refusal which comes with them can be explained.
func (g *guard) query(ctx context.Context, a attempt, run func(*attempt) (driver.Rows, error)) (driver.Rows, error) {
	r := &result{ctx: ctx, guard: g, attempt: &a}
	g.run = func() (driver.Rows, error) {
		if g.fence.mode == Observe {
			rows, err := observe(ctx, g, a, func(a *attempt) (driver.Rows, error) { return r.readAhead(run(a)) })
			a.tell(ctx, err)
			if failed, ok := rows.(failedRows); ok && err != nil {
				failed.err = err
				return failed, nil
			}
			return rows, err
		}
		rows, err := run(&a)
		if a.plan.Versioned {
			rows, err = r.readAhead(rows, err)
		} else {
			r.base = rows
		}
		return rows, g.explain(ctx, &a, err)
	}
	rows, err := g.through.QueryContext(context.WithValue(ctx, resultKey{}, r), a.query, nil)
	if err != nil {
		return nil, err
	}
	return withColumnScanner(rows, r), nil
}

// ConnQueryContext does what [guard.query] has prepared.
func (g *guard) ConnQueryContext(ctx context.Context, _ driver.QueryerContext, _ string, _ []driver.NamedValue) (context.Context, driver.Rows, error) {
	rows, err := g.run()
	return ctx, rows, err
}

// RowsNext explains a refusal that comes with the rows.
func (g *guard) RowsNext(ctx context.Context, rows driver.Rows, dest []driver.Value) error {
	r := resultFrom(ctx)
	if r.ahead {
		r.ahead = false
		copy(dest, r.row)
		return r.err
	}
	return r.explain(rows.Next(dest))
}

// RowsClose explains a refusal that comes when the rest of the rows is read.
func (g *guard) RowsClose(ctx context.Context, rows driver.Rows) error {
	return resultFrom(ctx).explain(rows.Close())
}

// ConnBeginTx begins a transaction; on a base without BeginTx it does what
// database/sql would do.
func (g *guard) ConnBeginTx(ctx context.Context, _ driver.ConnBeginTx, opts driver.TxOptions) (context.Context, driver.Tx, error) {
	var tx driver.Tx
	var err error
	if base, ok := g.base.(driver.ConnBeginTx); ok {
		tx, err = base.BeginTx(ctx, opts)
	} else {
		tx, err = g.begin(ctx, opts)
	}
	g.inTx = err == nil
	return ctx, tx, err
}

// begin does what database/sql does for a connection without BeginTx.
func (g *guard) begin(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if opts.Isolation != 0 {
		return nil, errors.New("sql: driver does not support non-default isolation level")
	}
	if opts.ReadOnly {
		return nil, errors.New("sql: driver does not support read-only transactions")
	}
	tx, err := g.base.Begin()
	if err == nil && ctx.Err() != nil {
		_ = tx.Rollback() // the reason is the context's
		return nil, ctx.Err()
	}
	return tx, err
}

// TxCommit notes the end of a transaction.
func (g *guard) TxCommit(_ context.Context, tx driver.Tx) error {
	g.inTx = false
	return tx.Commit()
}

// TxRollback notes the end of a transaction.
func (g *guard) TxRollback(_ context.Context, tx driver.Tx) error {
	g.inTx = false
	return tx.Rollback()
}

// explain types and reports a refusal by the database. In a transaction
// database/sql sends nothing twice.
func (g *guard) explain(ctx context.Context, a *attempt, err error) error {
	if err == nil {
		return nil
	}
	if g.fence.profile.resends && !g.inTx && errors.Is(err, driver.ErrBadConn) {
		return &outcomeError{err.Error()}
	}
	typed := a.explain(err)
	if typed != err && !a.told { // is it the same error?
		a.told = true
		g.fence.report(ctx, Event{Kind: Refused, Query: a.query, Err: typed})
	}
	return typed
}

// A result is what the rows of a guarded query need to know. sqlmw hands it
// from the query to the rows in the context.
type result struct {
	ctx     context.Context // the application's
	guard   *guard
	attempt *attempt
	base    driver.Rows // unknown if a row is read ahead

	// A row read ahead, in Observe mode and for a serial, or the error instead of it.
	ahead bool
	row   []driver.Value
	err   error
}

type resultKey struct{}

func resultFrom(ctx context.Context) *result { return ctx.Value(resultKey{}).(*result) }

// explain types and reports a refusal that comes with the rows.
func (r *result) explain(err error) error {
	if err == io.EOF { // drivers return it bare
		return err
	}
	return r.guard.explain(r.ctx, r.attempt, err)
}
