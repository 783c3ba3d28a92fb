package sqlfence

//lint:file-ignore SA1019 base drivers may have nothing newer than what is deprecated

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"

	"github.com/ngrok/sqlmw"
)

// A guard is the interceptor of one connection's calls: each statement passes
// through it on the way from sqlmw's connection to the base driver's. Like its
// connection it is used by one goroutine at a time.
type guard struct {
	sqlmw.NullInterceptor
	fence    *fence
	base     driver.Conn
	inTx     bool
	prepared *stmt // the last one, which sqlmw hands out wrapped
}

var _ sqlmw.Interceptor = (*guard)(nil)

// ConnExecContext guards a statement that is executed without preparing it.
func (g *guard) ConnExecContext(ctx context.Context, c driver.ExecerContext, query string, args []driver.NamedValue) (driver.Result, error) {
	a, err := g.fence.admit(ctx, query, g.fence.rewriter.Plan(query), args, execForm)
	if err != nil {
		return nil, err
	}
	if !a.guarded() {
		g.followTx(query)
		return c.ExecContext(ctx, a.sql, a.args)
	}
	if g.fence.mode == Observe {
		return observe(ctx, g, a, args, func(a *attempt) (driver.Result, error) { return c.ExecContext(ctx, a.sql, a.args) })
	}
	res, err := c.ExecContext(ctx, a.sql, a.args)
	return res, g.explain(ctx, &a, err)
}

// ConnQueryContext guards a query that is run without preparing it.
func (g *guard) ConnQueryContext(ctx context.Context, c driver.QueryerContext, query string, args []driver.NamedValue) (context.Context, driver.Rows, error) {
	a, err := g.fence.admit(ctx, query, g.fence.rewriter.Plan(query), args, queryForm)
	if err != nil {
		return ctx, nil, err
	}
	if !a.guarded() {
		g.followTx(query)
		rows, err := c.QueryContext(ctx, a.sql, a.args)
		return ctx, rows, err
	}
	r := &result{}
	rows, err := g.query(ctx, a, r, args, func(a *attempt) (driver.Rows, error) { return c.QueryContext(ctx, a.sql, a.args) })
	return context.WithValue(ctx, resultKey{}, r), rows, err
}

// ConnPrepareContext prepares a statement that concerns a registered table, for
// executions under any context.
func (g *guard) ConnPrepareContext(ctx context.Context, _ driver.ConnPrepareContext, query string) (context.Context, driver.Stmt, error) {
	s, err := prepare(ctx, g, query)
	if err != nil {
		return ctx, nil, err
	}
	g.prepared = s
	return ctx, s, nil
}

// StmtQueryContext makes place in the context for what the rows need to know.
func (g *guard) StmtQueryContext(ctx context.Context, s driver.StmtQueryContext, _ string, args []driver.NamedValue) (context.Context, driver.Rows, error) {
	ctx = context.WithValue(ctx, resultKey{}, &result{})
	rows, err := s.QueryContext(ctx, args)
	return ctx, rows, err
}

// RowsNext explains a refusal that comes with the rows.
func (g *guard) RowsNext(ctx context.Context, rows driver.Rows, dest []driver.Value) error {
	if g.fence.mode == Observe {
		if r := resultFrom(ctx); r != nil && r.ahead {
			r.ahead = false
			copy(dest, r.row)
			return r.err
		}
	}
	return explainRows(ctx, rows.Next(dest))
}

// RowsClose explains a refusal that comes when the rest of the rows is read.
func (g *guard) RowsClose(ctx context.Context, rows driver.Rows) error {
	return explainRows(ctx, rows.Close())
}

// ConnBeginTx begins a transaction; on a base without BeginTx it does what
// database/sql would do.
func (g *guard) ConnBeginTx(ctx context.Context, c driver.ConnBeginTx, opts driver.TxOptions) (context.Context, driver.Tx, error) {
	var tx driver.Tx
	var err error
	if _, ok := g.base.(driver.ConnBeginTx); ok {
		tx, err = c.BeginTx(ctx, opts)
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

// query runs an attempt by run, and tells r what its rows need to know.
func (g *guard) query(ctx context.Context, a attempt, r *result, own []driver.NamedValue, run func(*attempt) (driver.Rows, error)) (driver.Rows, error) {
	r.guard, r.attempt = g, &a
	if g.fence.mode == Observe {
		return observe(ctx, g, a, own, func(a *attempt) (driver.Rows, error) { return r.readAhead(run(a)) })
	}
	rows, err := run(&a)
	return rows, g.explain(ctx, &a, err)
}

// explain types and reports a refusal by the database.
func (g *guard) explain(ctx context.Context, a *attempt, err error) error {
	if err == nil {
		return nil
	}
	typed := a.explain(err)
	if typed != err { // is it the same error?
		g.fence.report(ctx, Event{Kind: Refused, Query: a.query, Err: typed})
	}
	return typed
}

// A result is what the rows of a guarded query need to know. sqlmw hands it
// from the query to the rows in the context.
type result struct {
	guard   *guard
	attempt *attempt

	// A row read ahead in Observe mode, or the error instead of it.
	ahead bool
	row   []driver.Value
	err   error
}

type resultKey struct{}

func resultFrom(ctx context.Context) *result {
	r, _ := ctx.Value(resultKey{}).(*result)
	return r
}

func explainRows(ctx context.Context, err error) error {
	if err == nil || err == io.EOF { // drivers return it bare
		return err
	}
	if r := resultFrom(ctx); r != nil && r.attempt != nil {
		return r.guard.explain(ctx, r.attempt, err)
	}
	return err
}
