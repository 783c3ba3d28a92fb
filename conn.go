package sqlfence

//lint:file-ignore SA1019 base drivers may have nothing newer than what is deprecated

import (
	"context"
	"database/sql/driver"

	"github.com/sqlfence/sqlfence/internal/basedriver"
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

// conn is a fenced connection around the base driver's.
type conn struct {
	base  driver.Conn
	state *connState
}

// newConn fences base. database/sql keeps a connection after a transaction's
// context was cancelled only if it has both SessionResetter and Validator, so
// the two are there exactly if base has them.
func newConn(s *settings, base driver.Conn, f *found) (driver.Conn, error) {
	state, err := newConnState(s, base, f)
	if err != nil {
		_ = base.Close() // the reason is err
		return nil, err
	}
	c := &conn{base: base, state: state}
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
func (c *conn) Close() error {
	if c.state.closed {
		return nil // a driver may not expect it twice
	}
	c.state.cache.expire()
	return c.base.Close()
}

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
	return c.state.sqlmw.begin(ctx, opts)
}

// Prepare implements driver.Conn.
func (c *conn) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

// PrepareContext implements driver.ConnPrepareContext. A statement that concerns
// no registered table is the base driver's own, where its arguments can't
// change what it is.
func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s, err := c.prepare(ctx, query)
	return s, c.state.explain(ctx, err)
}

func (c *conn) prepare(ctx context.Context, query string) (driver.Stmt, error) {
	settings, plan := c.state.settings, c.state.rewriter().Plan(query)
	c.state.follow(ctx, query)
	// Where arguments may be options, each execution has to be looked at. So has what is
	// followed or told.
	if plan.Verdict == rewrite.Pass && len(plan.Settings) == 0 && !settings.told.has(Passed) && (settings.profile.NoOptions || len(settings.tables) == 0) && !c.state.follows(query) {
		return basedriver.Prepare(ctx, c.base, settings.placed(ctx, query))
	}
	s, err := prepare(ctx, c.state, query, plan)
	if err != nil {
		return nil, err
	}
	return s.withOptional(), nil
}

// ExecContext implements driver.ExecerContext.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if !basedriver.CanExec(c.base) {
		return nil, driver.ErrSkip
	}
	return execute(ctx, c.execution(query, args, false), execCall)
}

// QueryContext implements driver.QueryerContext.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if !basedriver.CanQuery(c.base) {
		return nil, driver.ErrSkip
	}
	return execute(ctx, c.execution(query, args, true), queryCall)
}

func (c *conn) execution(query string, args []driver.NamedValue, rows bool) execution {
	s := c.state.settings
	return execution{state: c.state, registry: &s.registry, rows: rows, plan: c.state.rewriter().Plan(query), asked: request{query: query, args: args}}
}

// CheckNamedValue implements driver.NamedValueChecker. For a base that has none
// it leaves the argument to database/sql's next choice.
func (c *conn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.base.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

// Raw returns the base driver's connection, for sql.Conn.Raw. What is done with
// it isn't guarded; the observer gets an event that it was handed out.
func (c *conn) Raw() driver.Conn {
	c.state.settings.report(context.Background(), Event{Kind: RawAccess})
	c.state.cache.expire()
	c.state.session.Changed()
	return c.base
}
