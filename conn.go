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
	adapter *connAdapter
	state   *core.Conn
	plain   bool // for statements on no registered table, PrepareContext returns the base driver's statement
}

// newConn fences base. After the cancellation of a transaction's context database/sql keeps only a connection that
// implements SessionResetter and Validator. So the fenced connection implements each of the two exactly if base does.
func newConn(ctx context.Context, s *core.Settings, base driver.Conn, f *core.Found) (driver.Conn, error) {
	l := newConnAdapter(s, base)
	if err := f.Check(ctx, s, l); err != nil {
		return nil, err
	}
	c := &conn{adapter: l, state: core.NewConn(s, l, f)}
	if !l.cache.rows {
		l.cache.none = c.state.ReturnsCounts
	}
	var err error
	if l.sqlmw, err = newInterceptor(base, c.state); err != nil {
		return nil, err
	}
	_, resets := base.(driver.SessionResetter)
	_, validates := base.(driver.Validator)
	c.plain = resets || validates // otherwise the pool would execute the statement on a finished connection
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

// A resetter keeps the pool from handing out a finished connection.
type resetter struct{ conn *conn }

func (r resetter) ResetSession(ctx context.Context) error {
	if r.conn.state.Finished() {
		return driver.ErrBadConn
	}
	return r.conn.adapter.base.(driver.SessionResetter).ResetSession(ctx)
}

// A validator keeps the pool from taking back a finished connection.
type validator struct{ conn *conn }

func (v validator) IsValid() bool {
	return !v.conn.state.Finished() && v.conn.adapter.base.(driver.Validator).IsValid()
}

func (c *conn) Close() error {
	if c.state.IsClosed() {
		return nil // a driver may not expect a second Close
	}
	c.adapter.cache.expire()
	return c.adapter.Close()
}

// Ping implements driver.Pinger. Without it a connection counts as alive.
func (c *conn) Ping(ctx context.Context) error {
	if c.state.Finished() {
		return driver.ErrBadConn
	}
	if pinger, ok := c.adapter.base.(driver.Pinger); ok {
		return pinger.Ping(ctx)
	}
	return nil
}

func (c *conn) Begin() (driver.Tx, error) {
	return c.BeginTx(context.Background(), driver.TxOptions{})
}

func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	return c.adapter.sqlmw.begin(ctx, opts)
}

func (c *conn) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

// PrepareContext implements driver.ConnPrepareContext. For a statement on no registered table it returns the base
// driver's statement, unless arguments can change the SQL.
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
		return basedriver.Prepare(ctx, c.adapter.base, text)
	}
	if err := s.prepare(ctx); err != nil {
		return nil, err
	}
	return s.withOptional(), nil
}

func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if !basedriver.CanExec(c.adapter.base) {
		return nil, driver.ErrSkip
	}
	return core.Execute(ctx, c.execution(query, args, false), core.Call[driver.Result](execCall{}))
}

func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if !basedriver.CanQuery(c.adapter.base) {
		return nil, driver.ErrSkip
	}
	return c.query(ctx, c.execution(query, args, true))
}

// execution returns an execution of query. If query is the name of a prepared statement, as a hook of pgxpool may
// prepare, pgx executes it. So execution plans its SQL, and sends the SQL instead of the name if a guard is needed.
func (c *conn) execution(query string, args []driver.NamedValue, rows bool) *core.Execution {
	plan := c.state.Rewriter().Plan(query)
	if behind, named := c.adapter.prepared.Text(query); named && behind != query {
		if p := c.state.Rewriter().Plan(behind); p.Verdict != guard.Pass {
			query, plan = behind, p
		}
	}
	return c.state.NewExecution(core.Request{Query: query, Args: args}, plan, rows)
}

// CheckNamedValue implements driver.NamedValueChecker. If base has none, database/sql converts the argument.
func (c *conn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.adapter.base.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

// Fenced implements fenced.Conn: package verify queries the database over the connection.
func (c *conn) Fenced() (*core.Settings, core.ConnAdapter) { return c.state.Settings(), c.adapter }

// Raw returns the base driver's connection, for sql.Conn.Raw. Calls on it aren't guarded; observers get RawAccess.
func (c *conn) Raw() driver.Conn {
	c.state.RawAccess()
	c.adapter.cache.expire()
	return c.adapter.base
}
