package sqlfence

//lint:file-ignore SA1019 base drivers may have nothing newer than what is deprecated

import (
	"context"
	"database/sql/driver"

	"github.com/sqlfence/sqlfence/rewrite"
)

var (
	_ driver.Conn               = (*conn)(nil)
	_ driver.ConnBeginTx        = (*conn)(nil)
	_ driver.ConnPrepareContext = (*conn)(nil)
	_ driver.ExecerContext      = (*conn)(nil)
	_ driver.QueryerContext     = (*conn)(nil)
	_ driver.Pinger             = (*conn)(nil)
	_ driver.NamedValueChecker  = (*conn)(nil)
)

// conn is a fenced connection: the base driver's, with the guard on its way.
type conn struct {
	base  driver.Conn
	guard *guard
}

// newConn fences base. database/sql keeps a connection after a transaction's
// context was cancelled only if it has both SessionResetter and Validator, so
// the two are there exactly if base has them.
func newConn(f *fence, base driver.Conn) (driver.Conn, error) {
	g, err := newGuard(f, base)
	if err != nil {
		_ = base.Close() // the reason is err
		return nil, err
	}
	c := &conn{base: base, guard: g}
	resetter, resets := base.(driver.SessionResetter)
	validator, validates := base.(driver.Validator)
	switch {
	case resets && validates:
		return struct {
			*conn
			driver.SessionResetter
			driver.Validator
		}{c, resetter, validator}, nil
	case resets:
		return struct {
			*conn
			driver.SessionResetter
		}{c, resetter}, nil
	case validates:
		return struct {
			*conn
			driver.Validator
		}{c, validator}, nil
	}
	return c, nil
}

// Close implements driver.Conn.
func (c *conn) Close() error { return c.base.Close() }

// Ping implements driver.Pinger. Without it a connection counts as alive.
func (c *conn) Ping(ctx context.Context) error {
	if pinger, ok := c.base.(driver.Pinger); ok {
		return pinger.Ping(ctx)
	}
	return nil
}

// Begin implements driver.Conn.
func (c *conn) Begin() (driver.Tx, error) {
	return c.BeginTx(context.Background(), driver.TxOptions{})
}

// BeginTx implements driver.ConnBeginTx.
func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	return c.guard.through.BeginTx(ctx, opts)
}

// Prepare implements driver.Conn.
func (c *conn) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

// PrepareContext implements driver.ConnPrepareContext. A statement that concerns
// no registered table is the base driver's own, where its arguments can't
// change what it is.
func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	f := c.guard.fence
	plan := f.rewriter.Plan(query)
	// Where arguments may be options, each execution has to be looked at.
	if plan.Verdict == rewrite.Pass && (f.profile.noOptions || len(f.tables) == 0) && !c.guard.followsTx(query) {
		return prepareBase(ctx, c.base, query)
	}
	s, err := prepare(ctx, c.guard, query, plan)
	if err != nil {
		return nil, err
	}
	return s.withOptional(), nil
}

// ExecContext implements driver.ExecerContext.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if !canExec(c.base) {
		return nil, driver.ErrSkip
	}
	g := c.guard
	a, err := g.fence.admit(ctx, c.base, query, g.fence.rewriter.Plan(query), args, execForm)
	if err != nil {
		return nil, err
	}
	if !a.guarded() {
		res, err := execBase(ctx, c.base, a.sql, a.args)
		g.followTx(a.sql, err)
		a.tell(ctx, err)
		return res, err
	}
	return g.exec(ctx, a, func(a *attempt) (driver.Result, error) { return execBase(ctx, c.base, a.sql, a.args) })
}

// QueryContext implements driver.QueryerContext.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if !canQuery(c.base) {
		return nil, driver.ErrSkip
	}
	g := c.guard
	a, err := g.fence.admit(ctx, c.base, query, g.fence.rewriter.Plan(query), args, queryForm)
	if err != nil {
		return nil, err
	}
	if !a.guarded() {
		rows, err := queryBase(ctx, c.base, a.sql, a.args)
		g.followTx(a.sql, err)
		a.tell(ctx, err)
		return rows, err
	}
	return g.query(ctx, a, func(a *attempt) (driver.Rows, error) { return queryBase(ctx, c.base, a.sql, a.args) })
}

// CheckNamedValue implements driver.NamedValueChecker. For a base that has none
// it leaves the argument to whom database/sql would ask then.
func (c *conn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.base.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

// Raw returns the base driver's connection, for sql.Conn.Raw. What is done with
// it goes around the fence; the observer is told that it was handed out.
func (c *conn) Raw() driver.Conn {
	c.guard.fence.report(context.Background(), Event{Kind: RawAccess})
	return c.base
}
