package conformance

//lint:file-ignore SA1019 base drivers may have nothing newer than what is deprecated

import (
	"context"
	"database/sql/driver"
	"errors"
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

func (c *recConn) ExecContext(
	ctx context.Context, query string, args []driver.NamedValue,
) (res driver.Result, err error) {
	base, ok := c.Conn.(driver.ExecerContext)
	if !ok {
		return nil, driver.ErrSkip // also where it has driver.Execer: it is prepared then
	}
	if res, err = base.ExecContext(ctx, query, args); !errors.Is(err, driver.ErrSkip) {
		c.r.add(ctx, "exec", query)
	}
	return res, err
}

func (c *recConn) QueryContext(
	ctx context.Context, query string, args []driver.NamedValue,
) (rows driver.Rows, err error) {
	base, ok := c.Conn.(driver.QueryerContext)
	if !ok {
		return nil, driver.ErrSkip
	}
	if rows, err = base.QueryContext(ctx, query, args); !errors.Is(err, driver.ErrSkip) {
		c.r.add(ctx, "query", query)
	}
	return c.r.rows(rows, err)
}

func (c *recConn) Begin() (driver.Tx, error) {
	return c.BeginTx(context.Background(), driver.TxOptions{})
}

func (c *recConn) BeginTx(ctx context.Context, opts driver.TxOptions) (tx driver.Tx, err error) {
	if base, ok := c.Conn.(driver.ConnBeginTx); ok {
		tx, err = base.BeginTx(ctx, opts)
	} else if opts != (driver.TxOptions{}) {
		return nil, errors.New("conformance: the driver has no transaction options")
	} else {
		tx, err = c.Conn.Begin()
	}
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
	s, err := prepare(ctx, c.Conn, query)
	c.r.add(ctx, "prepare", query)
	if err != nil {
		return nil, err
	}
	c.r.opened("statements", 1)
	return &recStmt{Stmt: s, conn: c, query: query}, nil
}

func unnamed(args []driver.NamedValue) ([]driver.Value, error) {
	values := make([]driver.Value, len(args))
	for i, a := range args {
		if a.Name != "" {
			return nil, errors.New("conformance: the driver has no named arguments")
		}
		values[i] = a.Value
	}
	return values, nil
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
	if base, ok := s.Stmt.(driver.StmtExecContext); ok {
		return base.ExecContext(ctx, args)
	}
	values, err := unnamed(args)
	if err != nil {
		return nil, err
	}
	return s.Stmt.Exec(values)
}

func (s *recStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	s.conn.r.add(ctx, "stmt query", s.query)
	if base, ok := s.Stmt.(driver.StmtQueryContext); ok {
		return s.conn.r.rows(base.QueryContext(ctx, args))
	}
	values, err := unnamed(args)
	if err != nil {
		return nil, err
	}
	return s.conn.r.rows(s.Stmt.Query(values))
}
