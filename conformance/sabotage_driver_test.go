package conformance_test

import (
	"context"
	"database/sql/driver"
	"fmt"
	"io"
)

// A fault is what a driver or a wrapper does wrong. The zero fault does nothing
// wrong.
type fault struct {
	close   func(driver.Connector) error // of the connector
	conn    func(driver.Conn) driver.Conn
	closing error // of a connection
	ping    error
	begin   func(driver.TxOptions) driver.TxOptions
	commit  func(driver.Tx) error
	ctx     func(context.Context) context.Context
	text    func(query, way string) string // way is "exec", "query" or "prepare"
	args    func([]driver.NamedValue) []driver.NamedValue
	checked func(*driver.NamedValue) error
	exec    func(query string, exec func() (driver.Result, error)) (driver.Result, error)
	skips   bool // unprepared statements return ErrSkip
	rows    func(driver.Rows) driver.Rows
	err     func(error) error
	stmt    func(driver.Stmt) driver.Stmt
}

func with[T any](f func(T) T, v T) T {
	if f == nil {
		return v
	}
	return f(v)
}

func (f fault) sent(query, way string) string {
	if f.text == nil {
		return query
	}
	return f.text(query, way)
}

func (f fault) executed(query string, exec func() (driver.Result, error)) (driver.Result, error) {
	if f.exec != nil {
		run := exec
		exec = func() (driver.Result, error) { return f.exec(query, run) }
	}
	res, err := exec()
	if err != nil {
		return nil, with(f.err, err)
	}
	return res, nil
}

func (f fault) queried(rows driver.Rows, err error) (driver.Rows, error) {
	if err != nil {
		return nil, with(f.err, err)
	}
	return with(f.rows, rows), nil
}

// A faulty connector has a fault. The connections of its base have the methods
// of fullConn.
type faulty struct {
	driver.Connector
	fault fault
}

func (c faulty) Close() error {
	closer, ok := c.Connector.(io.Closer)
	switch {
	case c.fault.close != nil:
		return c.fault.close(c.Connector)
	case ok:
		return closer.Close()
	}
	return nil
}

func (c faulty) Connect(ctx context.Context) (driver.Conn, error) {
	base, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return with(c.fault.conn, driver.Conn(&faultyConn{base.(fullConn), c.fault})), nil
}

// A keeping connector's connections have SessionResetter and Validator. The driver's connections don't have these.
type keeping struct{ driver.Connector }

func (c keeping) Connect(ctx context.Context) (driver.Conn, error) {
	base, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return kept{base.(checkingConn)}, nil
}

type checkingConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.NamedValueChecker
}

type kept struct{ checkingConn }

func (kept) ResetSession(context.Context) error { return nil }

func (kept) IsValid() bool { return true }

type fullConn interface {
	checkingConn
	driver.SessionResetter
	driver.Validator
}

type faultyConn struct {
	fullConn
	fault fault
}

func (c *faultyConn) Close() error {
	if err := c.fullConn.Close(); err != nil {
		return err
	}
	return c.fault.closing
}

func (c *faultyConn) Ping(ctx context.Context) error {
	if c.fault.ping != nil {
		return c.fault.ping
	}
	return c.fullConn.Ping(ctx)
}

func (c *faultyConn) CheckNamedValue(v *driver.NamedValue) error {
	if c.fault.checked != nil {
		return c.fault.checked(v)
	}
	return c.fullConn.CheckNamedValue(v)
}

func (c *faultyConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	tx, err := c.fullConn.BeginTx(with(c.fault.ctx, ctx), with(c.fault.begin, opts))
	if err == nil && c.fault.commit != nil {
		tx = faultyTx{tx, c.fault}
	}
	return tx, err
}

type faultyTx struct {
	driver.Tx
	fault fault
}

func (t faultyTx) Commit() error { return t.fault.commit(t.Tx) }

func (c *faultyConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if c.fault.skips {
		return nil, driver.ErrSkip
	}
	return c.fault.executed(query, func() (driver.Result, error) {
		return c.fullConn.ExecContext(with(c.fault.ctx, ctx), c.fault.sent(query, "exec"), with(c.fault.args, args))
	})
}

func (c *faultyConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return c.fault.queried(c.fullConn.QueryContext(with(c.fault.ctx, ctx), c.fault.sent(query, "query"), with(c.fault.args, args)))
}

func (c *faultyConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s, err := c.fullConn.PrepareContext(with(c.fault.ctx, ctx), c.fault.sent(query, "prepare"))
	if err != nil {
		return nil, with(c.fault.err, err)
	}
	return with(c.fault.stmt, driver.Stmt(&faultyStmt{s.(fullStmt), query, c.fault})), nil
}

type fullStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
	driver.NamedValueChecker
}

type faultyStmt struct {
	fullStmt
	query string
	fault fault
}

func (s *faultyStmt) CheckNamedValue(v *driver.NamedValue) error {
	if s.fault.checked != nil {
		return s.fault.checked(v)
	}
	return s.fullStmt.CheckNamedValue(v)
}

func (s *faultyStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.fault.executed(s.query, func() (driver.Result, error) {
		return s.fullStmt.ExecContext(with(s.fault.ctx, ctx), with(s.fault.args, args))
	})
}

func (s *faultyStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.fault.queried(s.fullStmt.QueryContext(with(s.fault.ctx, ctx), with(s.fault.args, args)))
}

// A leaking statement isn't closed.
type leaking struct{ fullStmt }

func (leaking) Close() error { return nil }

// An uncounted statement doesn't know how many arguments it takes.
type uncounted struct{ fullStmt }

func (uncounted) NumInput() int { return -1 }

// Plain rows have none of the optional interfaces.
type plainRows struct{ driver.Rows }

// Endless rows claim that a result set follows.
type endless struct {
	driver.Rows
	sets int
}

func (e *endless) HasNextResultSet() bool { return e.sets == 0 }

func (e *endless) NextResultSet() error {
	if e.sets++; e.sets > 1 {
		return io.EOF
	}
	return nil
}

// Textual rows return integers as text.
type textual struct{ driver.Rows }

func (r textual) Next(dest []driver.Value) error {
	err := r.Rows.Next(dest)
	for i, v := range dest {
		if n, ok := v.(int64); ok {
			dest[i] = fmt.Sprint(n)
		}
	}
	return err
}

// Unclosable rows fail when they are closed.
type unclosable struct{ driver.Rows }

func (r unclosable) Close() error {
	if err := r.Rows.Close(); err != nil {
		return err
	}
	return errSabotage
}
