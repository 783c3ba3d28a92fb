package memdb

//lint:file-ignore SA1019 drivers may have nothing newer than what is deprecated

import (
	"context"
	"database/sql/driver"
)

// A Form says which of the optional interfaces connections, statements and rows
// have. Each form has what the one before it has, or something newer in its place.
type Form int

const (
	// Bare has none of them.
	Bare Form = iota
	// Old has driver.Execer and Queryer, and statements have ColumnConverter: a
	// driver of the time before contexts.
	Old
	// Contexts has the methods that take a context, Pinger, and rows with types.
	Contexts
	// Skips answers driver.ErrSkip to what has arguments, so that it is prepared.
	Skips
	// Checks has NamedValueChecker, on connections and statements, and rows have
	// several result sets.
	Checks
	// Full has SessionResetter and Validator besides.
	Full
)

type connector struct {
	db   *Database
	form Form
}

func (c connector) Driver() driver.Driver { return c }

func (c connector) Open(string) (driver.Conn, error) { return c.Connect(context.Background()) }

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	bare := &bareConn{session: session{db: c.db}, form: c.form}
	contexts := contextConn{bare}
	switch c.form {
	case Bare:
		return bare, nil
	case Old:
		return oldConn{bare}, nil
	case Contexts, Skips:
		return contexts, nil
	case Checks:
		return checkedConn{contexts, checker{}}, nil
	}
	return fullConn{checkedConn{contexts, checker{}}}, nil
}

// A bareConn has what every connection has.
type bareConn struct {
	session
	form Form
}

func (c *bareConn) Close() error {
	if c.inTx {
		return c.end(false)
	}
	return nil
}

func (c *bareConn) Prepare(query string) (driver.Stmt, error) {
	sc, err := c.db.script(query)
	if err != nil {
		return nil, err
	}
	bare := &bareStmt{c, sc}
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

func (c *bareConn) Begin() (driver.Tx, error) { return tx{c}, c.begin(driver.TxOptions{}) }

type tx struct{ conn *bareConn }

func (t tx) Commit() error   { return t.conn.end(true) }
func (t tx) Rollback() error { return t.conn.end(false) }

func (c *bareConn) text(ctx context.Context, query string, args []driver.NamedValue) (outcome, error) {
	if c.form == Skips && len(args) > 0 {
		return outcome{}, driver.ErrSkip
	}
	sc, err := c.db.script(query)
	if err != nil {
		return outcome{}, err
	}
	return c.script(ctx, sc, args), nil
}

func (c *bareConn) script(ctx context.Context, sc *script, args []driver.NamedValue) outcome {
	results, err := c.run(ctx, sc, args)
	return outcome{results, err, c.form}
}

// An oldConn runs texts without contexts.
type oldConn struct{ *bareConn }

func (c oldConn) Exec(query string, args []driver.Value) (driver.Result, error) {
	return contextConn(c).ExecContext(context.Background(), query, numbered(args))
}

func (c oldConn) Query(query string, args []driver.Value) (driver.Rows, error) {
	return contextConn(c).QueryContext(context.Background(), query, numbered(args))
}

// A contextConn has contexts.
type contextConn struct{ *bareConn }

func (c contextConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	o, err := c.text(ctx, query, args)
	if err != nil {
		return nil, err
	}
	return o.result()
}

func (c contextConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	o, err := c.text(ctx, query, args)
	if err != nil {
		return nil, err
	}
	return o.rows()
}

func (c contextConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return c.Prepare(query)
}

func (c contextConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return tx{c.bareConn}, c.begin(opts)
}

func (c contextConn) Ping(ctx context.Context) error { return ctx.Err() }

type checkedConn struct {
	contextConn
	checker
}

// A checker takes a type that database/sql doesn't: complex numbers, as text.
type checker struct{}

func (checker) CheckNamedValue(v *driver.NamedValue) (err error) {
	if n, ok := v.Value.(complex128); ok {
		v.Value = textOf(n)
		return nil
	}
	v.Value, err = driver.DefaultParameterConverter.ConvertValue(v.Value)
	return err
}

type fullConn struct{ checkedConn }

func (fullConn) ResetSession(context.Context) error { return nil }
func (fullConn) IsValid() bool                      { return true }

// A bareStmt has what every prepared statement has.
type bareStmt struct {
	conn   *bareConn
	script *script
}

func (s *bareStmt) Close() error  { return nil }
func (s *bareStmt) NumInput() int { return len(s.script.names) }
func (s *bareStmt) Exec(args []driver.Value) (driver.Result, error) {
	return contextStmt{s}.ExecContext(context.Background(), numbered(args))
}
func (s *bareStmt) Query(args []driver.Value) (driver.Rows, error) {
	return contextStmt{s}.QueryContext(context.Background(), numbered(args))
}

// An oldStmt has an opinion on arguments: truth values are numbers.
type oldStmt struct{ *bareStmt }

func (oldStmt) ColumnConverter(int) driver.ValueConverter { return truthConverter{} }

type truthConverter struct{}

func (truthConverter) ConvertValue(v any) (driver.Value, error) {
	if b, ok := v.(bool); ok {
		return boolean(b), nil
	}
	return driver.DefaultParameterConverter.ConvertValue(v)
}

type contextStmt struct{ *bareStmt }

func (s contextStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.conn.script(ctx, s.script, args).result()
}

func (s contextStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.conn.script(ctx, s.script, args).rows()
}

type checkedStmt struct {
	contextStmt
	checker
}

func numbered(values []driver.Value) []driver.NamedValue {
	args := make([]driver.NamedValue, len(values))
	for i, v := range values {
		args[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return args
}
