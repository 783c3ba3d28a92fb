// Package fakedb is a database/sql driver for tests without a database: a function
// of the test answers each statement, and the driver records what it was sent. It
// is test support only; no package that users import may import it.
//
// The driver reads no SQL and keeps no rows. A test that wants a database that
// behaves writes a function that does; one that wants to replay uses [Script].
// sqlfence doesn't know the driver, so a test names the dialect that it is to
// stand for by WithDialect. It proves by itself that it raises what a guard raises, which is not
// recorded: see [Proof].
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

// A Handler answers a call. It is called on the goroutine that sent the call, on
// several at once if the test uses several, and may wait; ctx is the statement's,
// or that of BeginTx, and is never nil. Its error stands for the database's. A panic
// becomes an error too, because database/sql would keep its locks and hang; for the
// same reason it must not call t.Fatal.
type Handler func(ctx context.Context, c Call) (Answer, error)

// A Call is what a connection was asked for.
type Call struct {
	Kind  Kind
	Conn  int    // the connection, counted from 1; a transaction has one to itself
	Query string // the text as it was sent; of a transaction's begin and end what [DB] says
	Args  []any  // as database/sql converted them: driver.Values
}

// String returns the text, with the arguments as Go writes them behind it.
func (c Call) String() string {
	var b strings.Builder
	b.WriteString(c.Query)
	for i, arg := range c.Args {
		b.WriteString([]string{" -- ", ", "}[min(i, 1)])
		fmt.Fprintf(&b, "%#v", arg)
	}
	return b.String()
}

// Kind says what a [Call] is.
type Kind int

const (
	Exec     Kind = iota + 1 // a statement sent for its count only
	Query                    // a statement sent for its rows
	Begin                    // the begin of a transaction
	Commit                   // its end; if it fails the transaction is over as well
	Rollback                 // the same of a rollback
)

// An Answer is what the database says to a statement. The zero value is no row,
// and none affected.
type Answer struct {
	// Columns are the names of the rows' columns. Nil gives as many as the first
	// row has values, without names.
	Columns []string
	// Rows are the rows of a query; their values are driver.Values.
	Rows [][]any
	// RowsErr comes after the last row, in place of the end.
	RowsErr error
	// Affected is how many rows an execution changed.
	Affected int64
}

// A DB is a database, as a connector: open it with sql.OpenDB, or fenced with
// sqlfence.OpenDB. It is safe for concurrent use if its [Handler] is.
//
// Transactions are calls too, of the texts BEGIN, COMMIT and ROLLBACK; a begin
// with an isolation level or for reading has these behind it, as in "BEGIN Read
// Committed, read-only".
type DB struct {
	// Facts is what the server says of itself where it proves that it raises; nil for [Facts].
	Facts func(question string) (string, error)

	handle Handler

	mu    sync.Mutex
	conns int
	sent  []Call
}

// New returns a database that answers by handle.
func New(handle Handler) *DB { return &DB{handle: handle} }

// Script returns a Handler that gives one answer after the other to the
// statements, and lets transactions begin and end. A statement too many is an error.
func Script(answers ...Answer) Handler {
	var mu sync.Mutex
	return func(_ context.Context, c Call) (Answer, error) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case c.Kind != Exec && c.Kind != Query:
			return Answer{}, nil
		case len(answers) == 0:
			return Answer{}, fmt.Errorf("fakedb: the script is over, but there came: %v", c)
		}
		answer := answers[0]
		answers = answers[1:]
		return answer, nil
	}
}

// Sent returns the calls since the last Sent, also those that failed, in the
// order in which they came.
func (d *DB) Sent() []Call {
	d.mu.Lock()
	defer d.mu.Unlock()
	sent := d.sent
	d.sent = nil
	return sent
}

func (d *DB) call(ctx context.Context, c Call) (answer Answer, err error) {
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

// Open fails: a database is opened by its connector.
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
	if err := Proof(query, c.db.Facts); err != nil {
		return nil, err
	}
	answer, err := c.call(ctx, Exec, query, args)
	if err != nil {
		return nil, err
	}
	return driver.RowsAffected(answer.Affected), nil
}

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

func (c *conn) call(ctx context.Context, kind Kind, query string, args []driver.NamedValue) (Answer, error) {
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

// A stmt is a prepared statement; it is sent when it is executed.
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
