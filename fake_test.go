package sqlfence_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/fakedb"
	"github.com/sqlfence/sqlfence/internal/nonce"
)

func init() { nonce.Fix("nonce") }

// A fake is a base driver without a database. It records the statements that
// reach it, "BEGIN", "COMMIT" and "ROLLBACK" among them.
type fake struct {
	// form wraps each new connection, to give it more or less of the optional
	// interfaces; nil leaves it with all that most drivers have.
	form func(*fakeConn) driver.Conn
	// fails returns the error of a statement; nil lets all succeed.
	fails func(query string) error
	// failsNext is the error of the rows' first Next.
	failsNext error
	// result is of each execution; nil for one row.
	result driver.Result
	// noRow leaves the rows of a query empty.
	noRow bool

	mu     sync.Mutex
	sent   []string
	args   []driver.NamedValue // of the last statement
	closed int                 // calls of the connector's Close
}

// open fences the fake as a database that speaks SQLite's SQL.
func (f *fake) open(t testing.TB, opts ...sqlfence.Option) *sql.DB {
	t.Helper()
	db, err := sqlfence.OpenDB(f, append([]sqlfence.Option{sqlfence.WithDialect(sqlfence.SQLite)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() }) // some tests close it themselves
	return db
}

// wantSent compares what reached the fake since the last call.
func (f *fake) wantSent(t testing.TB, want ...string) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Equal(f.sent, want) {
		t.Errorf("the base driver got %q, want %q", f.sent, want)
	}
	f.sent = nil
}

func (f *fake) record(query string, args []driver.NamedValue) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sent = append(f.sent, query)
	f.args = slices.Clone(args)
	if f.fails == nil {
		return nil
	}
	return f.fails(query)
}

func (f *fake) executed(query string, args []driver.NamedValue) (driver.Result, error) {
	if err := fakedb.Proof(query, nil); err != nil {
		return nil, err
	}
	result := f.result
	if result == nil {
		result = driver.RowsAffected(1)
	}
	return result, f.record(query, args)
}

// A fake is its own driver and connector.

func (f *fake) Open(string) (driver.Conn, error) { return f.Connect(context.Background()) }
func (f *fake) Driver() driver.Driver            { return f }
func (f *fake) Close() error                     { f.closed++; return nil }
func (f *fake) Connect(context.Context) (driver.Conn, error) {
	c := &fakeConn{bareConn{fake: f}}
	if f.form == nil {
		return c, nil
	}
	return f.form(c), nil
}

// A bareConn has what every connection has; a fakeConn what most have.
type bareConn struct{ fake *fake }

func (c bareConn) Close() error { return nil }
func (c bareConn) Prepare(query string) (driver.Stmt, error) {
	return &bareStmt{c.fake, query}, nil
}
func (c bareConn) Begin() (driver.Tx, error) { return bareTx(c), c.fake.record("BEGIN", nil) }

type fakeConn struct{ bareConn }

func (c *fakeConn) PrepareContext(_ context.Context, query string) (driver.Stmt, error) {
	return &fakeStmt{bareStmt{c.fake, query}}, nil
}
func (c *fakeConn) BeginTx(_ context.Context, opts driver.TxOptions) (driver.Tx, error) {
	query := "BEGIN " + sql.IsolationLevel(opts.Isolation).String()
	if opts.ReadOnly {
		query += " READ ONLY"
	}
	return bareTx(c.bareConn), c.fake.record(query, nil)
}
func (c *fakeConn) ExecContext(_ context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return c.fake.executed(query, args)
}
func (c *fakeConn) QueryContext(_ context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return &fakeRows{err: c.fake.failsNext, done: c.fake.noRow}, c.fake.record(query, args)
}

type bareTx bareConn

func (tx bareTx) Commit() error   { return tx.fake.record("COMMIT", nil) }
func (tx bareTx) Rollback() error { return tx.fake.record("ROLLBACK", nil) }

// A bareStmt is a statement of the time before contexts.
type bareStmt struct {
	fake  *fake
	query string
}

func (s *bareStmt) Close() error  { return nil }
func (s *bareStmt) NumInput() int { return -1 }
func (s *bareStmt) Exec(args []driver.Value) (driver.Result, error) {
	return s.fake.executed(s.query, numbered(args))
}
func (s *bareStmt) Query(args []driver.Value) (driver.Rows, error) {
	return &fakeRows{err: s.fake.failsNext, done: s.fake.noRow}, s.fake.record(s.query, numbered(args))
}

type fakeStmt struct{ bareStmt }

func (s *fakeStmt) ExecContext(_ context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.fake.executed(s.query, args)
}
func (s *fakeStmt) QueryContext(_ context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return &fakeRows{err: s.fake.failsNext, done: s.fake.noRow}, s.fake.record(s.query, args)
}

func numbered(values []driver.Value) []driver.NamedValue {
	args := make([]driver.NamedValue, len(values))
	for i, v := range values {
		args[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return args
}

// fakeRows is one row that holds 1, or an error in its place.
type fakeRows struct {
	err  error
	done bool
}

func (r *fakeRows) Columns() []string { return []string{"n"} }
func (r *fakeRows) Close() error      { return nil }
func (r *fakeRows) Next(dest []driver.Value) error {
	if r.err != nil {
		return r.err
	}
	if r.done {
		return io.EOF
	}
	r.done = true
	dest[0] = int64(1)
	return nil
}

// errStaleAt9 is how SQLite words the refusal of a token by a mark of 9.
var errStaleAt9 = errors.New("bad JSON path: 'sqlfence:nonce:stale:0:9'")

// openPostgres is open for PostgreSQL.
func (f *fake) openPostgres(t *testing.T, opts ...sqlfence.Option) *sql.DB {
	t.Helper()
	db, err := sqlfence.OpenDB(f, append([]sqlfence.Option{sqlfence.WithDialect(sqlfence.Postgres)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}
