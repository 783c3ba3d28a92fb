// Package fakedb is a database/sql driver for tests without a database: a function of the test answers each statement,
// and the driver records all calls. Only tests, and packages for tests, may import fakedb.
//
// The driver reads no SQL and keeps no rows. A test writes a function that behaves like the database, or replays
// answers with [Script]. sqlfence doesn't know the driver, so a test must name a dialect by WithDialect. The driver
// answers sqlfence's probe for the errors of guards itself, without recording the probe: see [ProbeError].
package fakedb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
)

// A Handler answers a call. It runs on the goroutine of the call, concurrently if the test uses several goroutines,
// and may wait. ctx is the context of the statement or of BeginTx, and never nil. The returned error is the
// database's. A panic becomes an error, because database/sql would keep its locks and hang; for that reason a Handler
// must not call t.Fatal.
type Handler func(ctx context.Context, c Call) (Response, error)

// A Call is a call of a connection.
type Call struct {
	Kind  Kind
	Conn  int    // the number of the connection, from 1; a transaction has a separate connection
	Query string // the SQL as sent; for the begin and end of a transaction see [DB]
	Args  []any  // driver.Values, as database/sql converts arguments
}

// String returns the SQL, followed by the arguments in Go syntax.
func (c Call) String() string {
	var b strings.Builder
	b.WriteString(c.Query)
	for i, arg := range c.Args {
		b.WriteString([]string{" -- ", ", "}[min(i, 1)])
		fmt.Fprintf(&b, "%#v", arg)
	}
	return b.String()
}

// Kind is the kind of a [Call].
type Kind int

const (
	Exec     Kind = iota + 1 // a statement sent for its count only
	Query                    // a statement sent for its rows
	Begin                    // the begin of a transaction
	Commit                   // a commit; a failed commit also ends the transaction
	Rollback                 // a rollback; a failed rollback also ends the transaction
)

// A Response is the database's response to a statement. The zero value has no rows, and no affected rows.
type Response struct {
	// Columns are the names of the columns. Nil means unnamed columns, as many as the first row has values.
	Columns []string
	// Rows are the rows of a query; their values are driver.Values.
	Rows [][]any
	// RowsErr is returned after the last row instead of io.EOF.
	RowsErr error
	// Affected is how many rows an execution changed.
	Affected int64
	// HasID: an execution has a LAST_INSERT_ID, which is 0.
	HasID bool
}

// A DB is a database, as a connector: open it with sql.OpenDB, or fenced with sqlfence.OpenDB. A DB is safe for
// concurrent use if its [Handler] is.
//
// The begin and end of a transaction are calls with the SQL BEGIN, COMMIT and ROLLBACK. The isolation level and
// read-only follow BEGIN, as in "BEGIN Read Committed, read-only".
type DB struct {
	// Capabilities returns the server's facts in the response to sqlfence's probe; nil for [Capabilities].
	Capabilities func(question string) (string, error)

	handle Handler

	mu    sync.Mutex
	conns int
	sent  []Call
}

// New returns a database that calls handle for each call.
func New(handle Handler) *DB { return &DB{handle: handle} }

// Script returns a Handler that returns the answers in turn, one for each statement, and lets transactions begin and
// end. Further statements are errors.
func Script(answers ...Response) Handler {
	var mu sync.Mutex
	return func(_ context.Context, c Call) (Response, error) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case c.Kind != Exec && c.Kind != Query:
			return Response{}, nil
		case len(answers) == 0:
			return Response{}, fmt.Errorf("fakedb: the script is over, but there came: %v", c)
		}
		answer := answers[0]
		answers = answers[1:]
		return answer, nil
	}
}

// Sent returns the calls since the last Sent, including failed calls, in order.
func (d *DB) Sent() []Call {
	d.mu.Lock()
	defer d.mu.Unlock()
	sent := d.sent
	d.sent = nil
	return sent
}

func (d *DB) call(ctx context.Context, c Call) (answer Response, err error) {
	d.mu.Lock()
	d.sent = append(d.sent, c)
	d.mu.Unlock()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("fakedb: the handler panicked at %v: %v\n%s", c, p, debug.Stack())
		}
	}()
	return d.handle(ctx, c)
}

// Connect implements driver.Connector.
func (d *DB) Connect(context.Context) (driver.Conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.conns++
	return &conn{d, d.conns}, nil
}

// Driver implements driver.Connector.
func (d *DB) Driver() driver.Driver { return Driver{} }

// Driver is the type that identifies the databases' driver.
type Driver struct{}

// Open fails, because only a connector opens a database.
func (Driver) Open(string) (driver.Conn, error) {
	return nil, errors.New("fakedb: open with sql.OpenDB")
}

type conn struct {
	db *DB
	id int
}

func (c *conn) Close() error { return nil }

func (c *conn) Prepare(query string) (driver.Stmt, error) { return &stmt{c, query}, nil }

func (c *conn) Begin() (driver.Tx, error) { return c.BeginTx(context.Background(), driver.TxOptions{}) }

func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	var said []string
	if level := sql.IsolationLevel(opts.Isolation); level != sql.LevelDefault {
		said = append(said, level.String())
	}
	if opts.ReadOnly {
		said = append(said, "read-only")
	}
	query := strings.TrimSpace("BEGIN " + strings.Join(said, ", "))
	if _, err := c.call(ctx, Begin, query, nil); err != nil {
		return nil, err
	}
	return tx{c}, nil
}

func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if err := ProbeError(query, c.db.Capabilities); err != nil {
		return nil, err
	}
	answer, err := c.call(ctx, Exec, query, args)
	if err != nil {
		return nil, err
	}
	if answer.HasID {
		return resultWithID{driver.RowsAffected(answer.Affected)}, nil
	}
	return driver.RowsAffected(answer.Affected), nil
}

type resultWithID struct{ driver.Result }

func (resultWithID) LastInsertId() (int64, error) { return 0, nil }

func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	answer, err := c.call(ctx, Query, query, args)
	if err != nil {
		return nil, err
	}
	if answer.Columns == nil && len(answer.Rows) > 0 {
		answer.Columns = make([]string, len(answer.Rows[0]))
	}
	return &rows{answer}, nil
}

func (c *conn) call(ctx context.Context, kind Kind, query string, args []driver.NamedValue) (Response, error) {
	values := make([]any, len(args))
	for i, arg := range args {
		values[i] = arg.Value
	}
	return c.db.call(ctx, Call{kind, c.id, query, slices.Clip(values)})
}

type tx struct{ conn *conn }

func (t tx) Commit() error {
	_, err := t.conn.call(context.Background(), Commit, "COMMIT", nil)
	return err
}

func (t tx) Rollback() error {
	_, err := t.conn.call(context.Background(), Rollback, "ROLLBACK", nil)
	return err
}

// A stmt is a prepared statement, which is sent only when executed.
type stmt struct {
	*conn
	query string
}

func (s *stmt) Close() error  { return nil }
func (s *stmt) NumInput() int { return -1 }

func (s *stmt) Exec([]driver.Value) (driver.Result, error) { return nil, errContext }
func (s *stmt) Query([]driver.Value) (driver.Rows, error)  { return nil, errContext }

var errContext = errors.New("fakedb: database/sql calls the methods with a context")

func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.conn.ExecContext(ctx, s.query, args)
}

func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.conn.QueryContext(ctx, s.query, args)
}
