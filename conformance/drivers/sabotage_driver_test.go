package drivers

import (
	"context"
	"database/sql/driver"
	"io"
)

// A fault is what a wrapper does wrong. The zero fault does nothing wrong, where
// connections have the interfaces of fullConn and no others.
type fault struct {
	open   bool  // the connector isn't closed
	keeps  bool  // the connection claims that it can be kept
	close  error // of a connection
	ping   error
	begin  func(driver.TxOptions) driver.TxOptions
	commit func(driver.Tx) error
	ctx    func(context.Context) context.Context
	query  func(string) string
	times  int // how often something is executed; 0 is once, -1 never
	result driver.Result
	rows   func(driver.Rows) driver.Rows
	err    func(error) error
	inputs int
	leaks  bool
}

func (f fault) context(ctx context.Context) context.Context {
	if f.ctx != nil {
		return f.ctx(ctx)
	}
	return ctx
}

func (f fault) text(query string) string {
	if f.query != nil {
		return f.query(query)
	}
	return query
}

func (f fault) execute(exec func() (driver.Result, error)) (driver.Result, error) {
	if f.times < 0 {
		return driver.RowsAffected(1), nil
	}
	for range f.times - 1 {
		_, _ = exec() // the last one tells
	}
	res, err := exec()
	if err != nil {
		return nil, f.failed(err)
	}
	if f.result != nil {
		return f.result, nil
	}
	return res, nil
}

func (f fault) queried(rows driver.Rows, err error) (driver.Rows, error) {
	if err != nil {
		return nil, f.failed(err)
	}
	if f.err != nil {
		rows = faultyRows{rows, f}
	}
	if f.rows != nil {
		rows = f.rows(rows)
	}
	return rows, nil
}

func (f fault) failed(err error) error {
	if f.err != nil && err != nil && err != driver.ErrSkip {
		return f.err(err)
	}
	return err
}

// faulty is a connector with a fault.
type faulty struct {
	driver.Connector
	fault fault
}

func (c faulty) Connect(ctx context.Context) (driver.Conn, error) {
	base, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	conn := &faultyConn{base.(fullConn), c.fault}
	if c.fault.keeps {
		return keeping{conn}, nil
	}
	return conn, nil
}

type keeping struct{ *faultyConn }

func (keeping) ResetSession(context.Context) error { return nil }
func (keeping) IsValid() bool                      { return true }

type faultyConn struct {
	fullConn
	fault fault
}

func (c *faultyConn) Close() error {
	if err := c.fullConn.Close(); err != nil {
		return err
	}
	return c.fault.close
}

func (c *faultyConn) Ping(ctx context.Context) error {
	if c.fault.ping != nil {
		return c.fault.ping
	}
	return c.fullConn.Ping(ctx)
}

func (c *faultyConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if c.fault.begin != nil {
		opts = c.fault.begin(opts)
	}
	tx, err := c.fullConn.BeginTx(c.fault.context(ctx), opts)
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
	return c.fault.execute(func() (driver.Result, error) {
		return c.fullConn.ExecContext(c.fault.context(ctx), c.fault.text(query), args)
	})
}

func (c *faultyConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return c.fault.queried(c.fullConn.QueryContext(c.fault.context(ctx), c.fault.text(query), args))
}

func (c *faultyConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s, err := c.fullConn.PrepareContext(c.fault.context(ctx), c.fault.text(query))
	if err != nil {
		return nil, c.fault.failed(err)
	}
	return &faultyStmt{s.(fullStmt), c.fault}, nil
}

type faultyStmt struct {
	fullStmt
	fault fault
}

func (s *faultyStmt) Close() error {
	if s.fault.leaks {
		return nil
	}
	return s.fullStmt.Close()
}

func (s *faultyStmt) NumInput() int {
	if s.fault.inputs != 0 {
		return s.fault.inputs
	}
	return s.fullStmt.NumInput()
}

func (s *faultyStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.fault.execute(func() (driver.Result, error) { return s.fullStmt.ExecContext(s.fault.context(ctx), args) })
}

func (s *faultyStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.fault.queried(s.fullStmt.QueryContext(s.fault.context(ctx), args))
}

// faultyRows pass their errors through the fault.
type faultyRows struct {
	driver.Rows
	fault fault
}

func (r faultyRows) Next(dest []driver.Value) error {
	err := r.Rows.Next(dest)
	if err == nil || err == io.EOF {
		return err
	}
	return r.fault.failed(err)
}
