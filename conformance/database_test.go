package conformance

//lint:file-ignore SA1019 drivers may have nothing newer than what is deprecated

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	modernc "modernc.org/sqlite"
)

// A Form is a set of a driver's optional interfaces. Each form has the interfaces of the previous form, or newer
// replacements.
type Form int

const (
	// Bare has no optional interface.
	Bare Form = iota
	// Old has driver.Execer and Queryer, and statements have ColumnConverter: a driver of the time
	// before contexts.
	Old
	// Contexts has the methods that take a context, Pinger, and rows with types.
	Contexts
	// Skips returns driver.ErrSkip for a statement with arguments, so that database/sql prepares the statement.
	Skips
	// Checks has NamedValueChecker, on connections and statements.
	Checks
	// Full also has SessionResetter and Validator.
	Full
)

// NewDatabase returns a connector to a fresh database of SQLite's, by a driver of the form. sqlfence
// doesn't know the driver.
func NewDatabase(t testing.TB, form Form) driver.Connector {
	file := filepath.Join(t.TempDir(), "test.db")
	return connector{"file:" + file + "?_pragma=busy_timeout(60000)&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)", form}
}

type connector struct {
	dsn  string
	form Form
}

func (c connector) Driver() driver.Driver { return c }

func (c connector) Open(string) (driver.Conn, error) { return c.Connect(context.Background()) }

func (c connector) Connect(context.Context) (driver.Conn, error) {
	base, err := new(modernc.Driver).Open(c.dsn)
	if err != nil {
		return nil, err
	}
	bare := &bareConn{base: base.(sqliteConn), form: c.form}
	switch c.form {
	case Bare:
		return bare, nil
	case Old:
		return oldConn{bare}, nil
	case Contexts, Skips:
		return contextConn{bare}, nil
	case Checks:
		return checkedConn{contextConn{bare}, checker{}}, nil
	}
	return fullConn{checkedConn{contextConn{bare}, checker{}}}, nil
}

// A sqliteConn has the methods of the connections of SQLite's driver.
type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// A bareConn has only the methods of driver.Conn.
type bareConn struct {
	base   sqliteConn
	form   Form
	closed bool
}

func (c *bareConn) Close() error {
	c.closed = true
	return c.base.Close()
}

func (c *bareConn) Begin() (driver.Tx, error) { return c.base.Begin() }

func (c *bareConn) Prepare(query string) (driver.Stmt, error) {
	return c.prepared(context.Background(), query)
}

// wait refuses a wrong number of arguments, with an error for each way to write placeholders. A statement that the
// checks take for slow takes its time here, unless the context ends before; in a bubble of synctest it takes none. wait
// returns the text to send.
func (c *bareConn) wait(ctx context.Context, query string, args int) (string, error) {
	if n := inputs(query); n >= 0 && n != args {
		return "", errors.New("wrong number of arguments")
	}
	if !strings.Contains(query, sqlite.slow) {
		return query, nil
	}
	done := time.NewTimer(10 * time.Second)
	defer done.Stop()
	select {
	case <-done.C:
		return strings.ReplaceAll(query, sqlite.slow, "1"), nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (c *bareConn) exec(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	query, err := c.wait(ctx, query, len(args))
	if err != nil {
		return nil, err
	}
	return c.base.ExecContext(ctx, query, args)
}

func (c *bareConn) query(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	query, err := c.wait(ctx, query, len(args))
	if err != nil {
		return nil, err
	}
	return c.base.QueryContext(ctx, query, args)
}

func (c *bareConn) prepared(ctx context.Context, query string) (driver.Stmt, error) {
	base, err := c.base.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	bare := bareStmt{c, base.(sqliteStmt), query}
	switch c.form {
	case Bare:
		return bare, nil
	case Old:
		return oldStmt{bare}, nil
	case Contexts, Skips:
		return contextStmt{bare}, nil
	}
	return checkedStmt{contextStmt{bare}, checker{}}, nil
}

// An oldConn runs texts without contexts.
type oldConn struct{ *bareConn }

func (c oldConn) Exec(query string, args []driver.Value) (driver.Result, error) {
	return c.exec(context.Background(), query, numbered(args))
}

func (c oldConn) Query(query string, args []driver.Value) (driver.Rows, error) {
	return hidden(c.query(context.Background(), query, numbered(args)))
}

// A contextConn has contexts.
type contextConn struct{ *bareConn }

func (c contextConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if c.form == Skips && len(args) > 0 {
		return nil, driver.ErrSkip
	}
	return c.exec(ctx, query, args)
}

func (c contextConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if c.form == Skips && len(args) > 0 {
		return nil, driver.ErrSkip
	}
	return c.query(ctx, query, args)
}

func (c contextConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	return c.prepared(ctx, query)
}

func (c contextConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if level := sql.IsolationLevel(opts.Isolation); level != sql.LevelDefault && level != sql.LevelSerializable {
		return nil, errors.New("isolation level " + level.String() + " is not supported")
	}
	return c.base.BeginTx(ctx, opts)
}

func (c contextConn) Ping(ctx context.Context) error { return c.base.Ping(ctx) }

type checkedConn struct {
	contextConn
	checker
}

// A checker accepts a type that database/sql doesn't: complex numbers, as text.
type checker struct{}

func (checker) CheckNamedValue(v *driver.NamedValue) (err error) {
	if n, ok := v.Value.(complex128); ok {
		v.Value = fmt.Sprint(n)
		return nil
	}
	v.Value, err = driver.DefaultParameterConverter.ConvertValue(v.Value)
	return err
}

type fullConn struct{ checkedConn }

func (c fullConn) ResetSession(ctx context.Context) error { return c.base.ResetSession(ctx) }
func (c fullConn) IsValid() bool                          { return c.base.IsValid() }

// A sqliteStmt has the methods of the statements of SQLite's driver.
type sqliteStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// A bareStmt has only the methods of driver.Stmt.
type bareStmt struct {
	conn  *bareConn
	base  sqliteStmt
	query string
}

// Close does nothing on a connection that is closed, where SQLite's driver crashes.
func (s bareStmt) Close() error {
	if s.conn.closed {
		return nil
	}
	return s.base.Close()
}

// NumInput counts placeholders without names, which SQLite's driver doesn't.
func (s bareStmt) NumInput() int { return inputs(s.query) }

// inputs returns how many arguments a text takes, or -1.
func inputs(query string) (n int) {
	query = literals.ReplaceAllString(query, "")
	if strings.ContainsAny(query, ":@") {
		return -1
	}
	for _, placeholder := range placeholders.FindAllStringSubmatch(query, -1) {
		number, err := strconv.Atoi(placeholder[1])
		if err != nil {
			number = n + 1
		}
		n = max(n, number)
	}
	return n
}

var (
	literals     = regexp.MustCompile(`'[^']*'`)
	placeholders = regexp.MustCompile(`\?(\d*)`)
)

func (s bareStmt) exec(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if strings.Contains(s.query, sqlite.slow) {
		return s.conn.exec(ctx, s.query, args)
	}
	return s.base.ExecContext(ctx, args)
}

func (s bareStmt) rows(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	if strings.Contains(s.query, sqlite.slow) {
		return s.conn.query(ctx, s.query, args)
	}
	return s.base.QueryContext(ctx, args)
}

func (s bareStmt) Exec(args []driver.Value) (driver.Result, error) {
	return s.exec(context.Background(), numbered(args))
}

func (s bareStmt) Query(args []driver.Value) (driver.Rows, error) {
	return hidden(s.rows(context.Background(), numbered(args)))
}

// An oldStmt converts arguments: truth values become numbers.
type oldStmt struct{ bareStmt }

func (oldStmt) ColumnConverter(int) driver.ValueConverter { return truthConverter{} }

type truthConverter struct{}

func (truthConverter) ConvertValue(v any) (driver.Value, error) {
	if b, ok := v.(bool); ok {
		return map[bool]int64{true: 1}[b], nil
	}
	return driver.DefaultParameterConverter.ConvertValue(v)
}

type contextStmt struct{ bareStmt }

func (s contextStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.exec(ctx, args)
}

func (s contextStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.rows(ctx, args)
}

type checkedStmt struct {
	contextStmt
	checker
}

// hidden returns rows that have only the methods of driver.Rows.
func hidden(rows driver.Rows, err error) (driver.Rows, error) {
	if err != nil {
		return nil, err
	}
	return struct{ driver.Rows }{rows}, nil
}

func numbered(values []driver.Value) []driver.NamedValue {
	args := make([]driver.NamedValue, len(values))
	for i, v := range values {
		args[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return args
}
