package sqlfence

//lint:file-ignore SA1019 base drivers may have nothing newer than what is deprecated

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
)

// How database/sql calls a connection that may lack the newer interfaces, and reads
// its errors.

// isSkip reports whether a driver wants the statement prepared first. Like database/sql
// it doesn't unwrap err.
//
// It can't panic: the comparison of two interfaces does so only if both hold one and
// the same uncomparable type, and the sentinel holds a pointer.
func isSkip(err error) bool { return err == driver.ErrSkip }

// isEnd reports whether rows have come to their end. As for isSkip, drivers return
// the sentinel bare, and the comparison can't panic.
func isEnd(err error) bool { return err == io.EOF }

func canExec(c driver.Conn) bool {
	switch c.(type) {
	case driver.ExecerContext, driver.Execer:
		return true
	}
	return false
}

func execBase(ctx context.Context, c driver.Conn, query string, args []driver.NamedValue) (driver.Result, error) {
	if c, ok := c.(driver.ExecerContext); ok {
		return c.ExecContext(ctx, query, args)
	}
	values, err := plain(ctx, args)
	if err != nil {
		return nil, err
	}
	if c, ok := c.(driver.Execer); ok {
		return c.Exec(query, values)
	}
	return nil, driver.ErrSkip
}

func canQuery(c driver.Conn) bool {
	switch c.(type) {
	case driver.QueryerContext, driver.Queryer:
		return true
	}
	return false
}

func queryBase(ctx context.Context, c driver.Conn, query string, args []driver.NamedValue) (driver.Rows, error) {
	if c, ok := c.(driver.QueryerContext); ok {
		return c.QueryContext(ctx, query, args)
	}
	values, err := plain(ctx, args)
	if err != nil {
		return nil, err
	}
	if c, ok := c.(driver.Queryer); ok {
		return c.Query(query, values)
	}
	return nil, driver.ErrSkip
}

func prepareBase(ctx context.Context, c driver.Conn, query string) (driver.Stmt, error) {
	if c, ok := c.(driver.ConnPrepareContext); ok {
		return c.PrepareContext(ctx, query)
	}
	s, err := c.Prepare(query)
	if err == nil && ctx.Err() != nil {
		return nil, closing(s.Close, ctx.Err())
	}
	return s, err
}

func execStmt(ctx context.Context, s driver.Stmt, args []driver.NamedValue) (driver.Result, error) {
	if s, ok := s.(driver.StmtExecContext); ok {
		return s.ExecContext(ctx, args)
	}
	values, err := plain(ctx, args)
	if err != nil {
		return nil, err
	}
	return s.Exec(values)
}

func queryStmt(ctx context.Context, s driver.Stmt, args []driver.NamedValue) (driver.Rows, error) {
	if s, ok := s.(driver.StmtQueryContext); ok {
		return s.QueryContext(ctx, args)
	}
	values, err := plain(ctx, args)
	if err != nil {
		return nil, err
	}
	return s.Query(values)
}

// plain returns arguments for a driver that takes no context and no names.
func plain(ctx context.Context, args []driver.NamedValue) ([]driver.Value, error) {
	values := make([]driver.Value, len(args))
	for i, a := range args {
		if a.Name != "" {
			return nil, errors.New("sql: driver does not support the use of Named Parameters")
		}
		values[i] = a.Value
	}
	return values, ctx.Err()
}

func named(values []driver.Value) []driver.NamedValue {
	args := make([]driver.NamedValue, len(values))
	for i, v := range values {
		args[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return args
}

// closing closes a resource that err has made useless, and returns err, or else the error
// of closing.
func closing(close func() error, err error) error {
	if closeErr := close(); err == nil {
		return closeErr
	}
	return err
}
