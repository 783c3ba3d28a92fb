package conformance

//lint:file-ignore SA1019 base drivers may have nothing newer than what is deprecated

import (
	"context"
	"database/sql/driver"

	"github.com/sqlfence/sqlfence/internal/basedriver"
)

type recConn struct {
	driver.Conn
	r *recorder
}

func (c *recConn) Close() error {
	c.r.opened("connections", -1)
	return c.Conn.Close()
}

func (c *recConn) Ping(ctx context.Context) error {
	if p, ok := c.Conn.(driver.Pinger); ok {
		return p.Ping(ctx)
	}
	return nil
}

func (c *recConn) ResetSession(ctx context.Context) error {
	if r, ok := c.Conn.(driver.SessionResetter); ok {
		return r.ResetSession(ctx)
	}
	return nil
}

func (c *recConn) IsValid() bool {
	v, ok := c.Conn.(driver.Validator)
	return !ok || v.IsValid()
}

func (c *recConn) CheckNamedValue(v *driver.NamedValue) error {
	if n, ok := c.Conn.(driver.NamedValueChecker); ok {
		return n.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

func (c *recConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	res, err := basedriver.Exec(ctx, c.Conn, query, args)
	if !basedriver.IsSkip(err) {
		c.r.add(ctx, "exec", query)
	}
	return res, err
}

func (c *recConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := basedriver.Query(ctx, c.Conn, query, args)
	if !basedriver.IsSkip(err) {
		c.r.add(ctx, "query", query)
	}
	return c.r.rows(rows, err)
}

func (c *recConn) Begin() (driver.Tx, error) {
	return c.BeginTx(context.Background(), driver.TxOptions{})
}

func (c *recConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	tx, err := basedriver.Begin(ctx, c.Conn, opts)
	c.r.add(ctx, "begin", "")
	if err != nil {
		return nil, err
	}
	c.r.opened("transactions", 1)
	return recTx{tx, c.r}, nil
}

func (c *recConn) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

func (c *recConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s, err := basedriver.Prepare(ctx, c.Conn, query)
	c.r.add(ctx, "prepare", query)
	if err != nil {
		return nil, err
	}
	c.r.opened("statements", 1)
	return &recStmt{Stmt: s, conn: c, query: query}, nil
}

type recStmt struct {
	driver.Stmt
	conn  *recConn
	query string
}

func (s *recStmt) Close() error {
	s.conn.r.opened("statements", -1)
	return s.Stmt.Close()
}

// CheckNamedValue calls the statement's or the connection's checker, as database/sql does.
func (s *recStmt) CheckNamedValue(v *driver.NamedValue) error {
	if n, ok := s.Stmt.(driver.NamedValueChecker); ok {
		return n.CheckNamedValue(v)
	}
	return s.conn.CheckNamedValue(v)
}

// ColumnConverter is the default one where the driver has none.
func (s *recStmt) ColumnConverter(i int) driver.ValueConverter {
	if c, ok := s.Stmt.(driver.ColumnConverter); ok {
		return c.ColumnConverter(i)
	}
	return driver.DefaultParameterConverter
}

func (s *recStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	s.conn.r.add(ctx, "stmt exec", s.query)
	return basedriver.ExecStmt(ctx, s.Stmt, args)
}

func (s *recStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	s.conn.r.add(ctx, "stmt query", s.query)
	return s.conn.r.rows(basedriver.QueryStmt(ctx, s.Stmt, args))
}
