package basedriver

//lint:file-ignore SA1019 base drivers may have nothing newer than what is deprecated

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
)

// The functions call a connection that may lack newer interfaces as database/sql does, and read its errors.

// IsSkip reports whether a driver wants the statement prepared first. Like database/sql
// it doesn't unwrap err.
//
// It can't panic: the comparison of two interfaces does so only if both hold one and
// the same uncomparable type, and the sentinel holds a pointer.
func IsSkip(err error) bool { return err == driver.ErrSkip }

// IsEnd reports whether err is the end of rows. As for IsSkip, drivers return the sentinel bare, and the comparison
// can't panic.
func IsEnd(err error) bool { return err == io.EOF }

// CanExec reports whether a connection executes SQL without preparing it.
func CanExec(c driver.Conn) bool {
	switch c.(type) {
	case driver.ExecerContext, driver.Execer:
		return true
	}
	return false
}

// Exec executes a text on a connection.
func Exec(ctx context.Context, c driver.Conn, query string, args []driver.NamedValue) (driver.Result, error) {
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

// CanQuery reports whether a connection executes a query without preparing it.
func CanQuery(c driver.Conn) bool {
	switch c.(type) {
	case driver.QueryerContext, driver.Queryer:
		return true
	}
	return false
}

// Query queries by a text on a connection.
func Query(ctx context.Context, c driver.Conn, query string, args []driver.NamedValue) (driver.Rows, error) {
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

// Prepare prepares a text on a connection.
func Prepare(ctx context.Context, c driver.Conn, query string) (driver.Stmt, error) {
	if c, ok := c.(driver.ConnPrepareContext); ok {
		return c.PrepareContext(ctx, query)
	}
	s, err := c.Prepare(query)
	if err == nil && ctx.Err() != nil {
		return nil, Closing(s.Close, ctx.Err())
	}
	return s, err
}

// ExecStmt executes a prepared statement.
func ExecStmt(ctx context.Context, s driver.Stmt, args []driver.NamedValue) (driver.Result, error) {
	if s, ok := s.(driver.StmtExecContext); ok {
		return s.ExecContext(ctx, args)
	}
	values, err := plain(ctx, args)
	if err != nil {
		return nil, err
	}
	return s.Exec(values)
}

// QueryStmt queries by a prepared statement.
func QueryStmt(ctx context.Context, s driver.Stmt, args []driver.NamedValue) (driver.Rows, error) {
	if s, ok := s.(driver.StmtQueryContext); ok {
		return s.QueryContext(ctx, args)
	}
	values, err := plain(ctx, args)
	if err != nil {
		return nil, err
	}
	return s.Query(values)
}

// Begin begins a transaction. On a base without BeginTx it does what
// database/sql would do. If it returns an error and a transaction, the caller must roll the transaction back.
func Begin(ctx context.Context, c driver.Conn, opts driver.TxOptions) (driver.Tx, error) {
	if c, ok := c.(driver.ConnBeginTx); ok {
		tx, err := c.BeginTx(ctx, opts)
		if err != nil {
			return nil, err // modernc.org/sqlite returns a nil *tx with err, which isn't a nil driver.Tx
		}
		return tx, nil
	}
	if opts.Isolation != 0 {
		return nil, errors.New("sql: driver does not support non-default isolation level")
	}
	if opts.ReadOnly {
		return nil, errors.New("sql: driver does not support read-only transactions")
	}
	tx, err := c.Begin()
	if err != nil {
		return nil, err
	}
	return tx, ctx.Err()
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

// Named returns values as arguments without names.
func Named(values []driver.Value) []driver.NamedValue {
	args := make([]driver.NamedValue, len(values))
	for i, v := range values {
		args[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return args
}

// Closing closes a resource, and returns err, or the error of close if err is nil.
func Closing(close func() error, err error) error {
	if closeErr := close(); err == nil {
		return closeErr
	}
	return err
}

// ErrorConverter converts the errors of rows for the application.
type ErrorConverter interface {
	// ConvertError returns the application's error for the error of a row.
	ConvertError(err error) error
}
