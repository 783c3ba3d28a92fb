package sqlfence

//lint:file-ignore SA1019 base drivers may have nothing newer than what is deprecated

import (
	"context"
	"database/sql/driver"

	"github.com/sqlfence/sqlfence/internal/basedriver"
	"github.com/sqlfence/sqlfence/internal/core"
	"github.com/sqlfence/sqlfence/internal/guard"
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
	link  *link
	state *core.Conn
	plain bool // a statement that concerns no registered table is the base driver's own
}

// newConn fences base. database/sql keeps a connection after a transaction's
// context was cancelled only if it has both SessionResetter and Validator, so
// the two are there exactly if base has them.
func newConn(ctx context.Context, s *core.Settings, base driver.Conn, f *core.Found) (driver.Conn, error) {
	l := newLink(s, base)
	if err := f.Check(ctx, s, l); err != nil {
		return nil, err
	}
	c := &conn{link: l, state: core.NewConn(s, l, f)}
	if !l.cache.rows {
		l.cache.none = c.state.ReturnsCounts
	}
	var err error
	if l.sqlmw, err = newInterceptor(base, c.state); err != nil {
		return nil, err
	}
	_, resets := base.(driver.SessionResetter)
	_, validates := base.(driver.Validator)
	c.plain = resets || validates // else the pool would execute the statement on a connection that is finished
	switch {
	case resets && validates:
		return struct {
			*conn
			resetter
			validator
		}{c, resetter{c}, validator{c}}, nil
	case resets:
		return struct {
			*conn
			resetter
		}{c, resetter{c}}, nil
	case validates:
		return struct {
			*conn
			validator
		}{c, validator{c}}, nil
	}
	return c, nil
}

// A resetter keeps the pool from handing out a connection that is finished.
type resetter struct{ conn *conn }

// ResetSession implements driver.SessionResetter.
func (r resetter) ResetSession(ctx context.Context) error {
	if r.conn.state.Finished() {
		return driver.ErrBadConn
	}
	return r.conn.link.base.(driver.SessionResetter).ResetSession(ctx)
}

// A validator keeps the pool from taking back a connection that is finished.
type validator struct{ conn *conn }

// IsValid implements driver.Validator.
func (v validator) IsValid() bool {
	return !v.conn.state.Finished() && v.conn.link.base.(driver.Validator).IsValid()
}

// Close implements driver.Conn.
func (c *conn) Close() error {
	if c.state.IsClosed() {
		return nil // a driver may not expect it twice
	}
	c.link.cache.expire()
	return c.link.Close()
}

// Ping implements driver.Pinger. Without it a connection counts as alive.
func (c *conn) Ping(ctx context.Context) error {
	if c.state.Finished() {
		return driver.ErrBadConn
	}
	if pinger, ok := c.link.base.(driver.Pinger); ok {
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
	return c.link.sqlmw.begin(ctx, opts)
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
	err = c.state.Explain(ctx, err)
	c.state.ReportFailure(ctx, query, err)
	return s, err
}

func (c *conn) prepare(ctx context.Context, query string) (driver.Stmt, error) {
	if c.state.Finished() {
		return nil, driver.ErrBadConn
	}
	s := &stmt{conn: c, query: query}
	if text, plain := c.state.PreparesPlain(ctx, query, s.current()); plain && c.plain {
		return basedriver.Prepare(ctx, c.link.base, text)
	}
	if err := s.prepare(ctx); err != nil {
		return nil, err
	}
	return s.withOptional(), nil
}

// ExecContext implements driver.ExecerContext.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if !basedriver.CanExec(c.link.base) {
		return nil, driver.ErrSkip
	}
	return core.Execute(ctx, c.execution(query, args, false), core.Call[driver.Result](execCall{}))
}

// QueryContext implements driver.QueryerContext.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if !basedriver.CanQuery(c.link.base) {
		return nil, driver.ErrSkip
	}
	return c.query(ctx, c.execution(query, args, true))
}

// execution returns one of a text. pgx runs a text that is the name of a prepared statement as that statement, which a
// hook of the pool may have prepared: then it is the text behind the name that is planned, and sent if it
// needs a guard.
func (c *conn) execution(query string, args []driver.NamedValue, rows bool) *core.Execution {
	plan := c.state.Rewriter().Plan(query)
	if behind, named := c.link.prepared.Text(query); named && behind != query {
		if p := c.state.Rewriter().Plan(behind); p.Verdict != guard.Pass {
			query, plan = behind, p
		}
	}
	return c.state.NewExecution(core.Request{Query: query, Args: args}, plan, rows)
}

// CheckNamedValue implements driver.NamedValueChecker. For a base that has none
// it leaves the argument to database/sql's next choice.
func (c *conn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.link.base.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

// Fenced implements fenced.Conn: package verify asks over the connection.
func (c *conn) Fenced() (*core.Settings, core.Link) { return c.state.Settings(), c.link }

// Raw returns the base driver's connection, for sql.Conn.Raw. What is done with
// it isn't guarded; the observer gets an event that it was handed out.
func (c *conn) Raw() driver.Conn {
	c.state.RawAccess()
	c.link.cache.expire()
	return c.link.base
}
