package fakedb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"
)

// A Recorder is a base driver without a database. It records all statements, including "BEGIN", "COMMIT" and
// "ROLLBACK".
type Recorder struct {
	// Form wraps each new connection, to add or hide optional interfaces; nil keeps the interfaces of most drivers.
	Form func(*RecorderConn) driver.Conn
	// Fails returns the error of a statement; if nil, all statements succeed.
	Fails func(query string) error
	// FailsNext is the error of the rows' first Next.
	FailsNext error
	// Result is the result of each Exec; nil means one affected row.
	Result driver.Result
	// NoRow leaves the rows of a query empty.
	NoRow bool

	Mu     sync.Mutex
	Sent   []string
	Args   []driver.NamedValue // arguments of the last statement
	Closed int                 // calls of the connector's Close
}

// WantSent compares the statements since the last WantSent with want.
func (f *Recorder) WantSent(t testing.TB, want ...string) {
	t.Helper()
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if !slices.Equal(f.Sent, want) {
		t.Errorf("the base driver got %q, want %q", f.Sent, want)
	}
	f.Sent = nil
}

// Values returns the values of the last statement's arguments.
func (f *Recorder) Values() (values []driver.Value) {
	for _, a := range f.Args {
		values = append(values, a.Value)
	}
	return values
}

func (f *Recorder) record(query string, args []driver.NamedValue) error {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.Sent = append(f.Sent, query)
	f.Args = slices.Clone(args)
	if f.Fails == nil {
		return nil
	}
	return f.Fails(query)
}

func (f *Recorder) executed(query string, args []driver.NamedValue) (driver.Result, error) {
	if err := ProbeError(query, nil); err != nil {
		return nil, err
	}
	result := f.Result
	if result == nil {
		result = driver.RowsAffected(1)
	}
	return result, f.record(query, args)
}

// A Recorder is a driver and a connector.

func (f *Recorder) Open(string) (driver.Conn, error) { return f.Connect(context.Background()) }
func (f *Recorder) Driver() driver.Driver            { return f }
func (f *Recorder) Close() error                     { f.Closed++; return nil }
func (f *Recorder) Connect(context.Context) (driver.Conn, error) {
	c := &RecorderConn{BareConn{Recorder: f}}
	if f.Form == nil {
		return c, nil
	}
	return f.Form(c), nil
}

// A BareConn has no optional interfaces; a RecorderConn has the optional interfaces of most drivers.
type BareConn struct{ Recorder *Recorder }

func (c BareConn) Close() error { return nil }
func (c BareConn) Prepare(query string) (driver.Stmt, error) {
	return &BareStmt{c.Recorder, query}, nil
}
func (c BareConn) Begin() (driver.Tx, error) { return recorderTx(c), c.Recorder.record("BEGIN", nil) }

type RecorderConn struct{ BareConn }

func (c *RecorderConn) PrepareContext(_ context.Context, query string) (driver.Stmt, error) {
	return &RecorderStmt{BareStmt{c.Recorder, query}}, nil
}
func (c *RecorderConn) BeginTx(_ context.Context, opts driver.TxOptions) (driver.Tx, error) {
	query := "BEGIN " + sql.IsolationLevel(opts.Isolation).String()
	if opts.ReadOnly {
		query += " READ ONLY"
	}
	return recorderTx(c.BareConn), c.Recorder.record(query, nil)
}
func (c *RecorderConn) ExecContext(_ context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return c.Recorder.executed(query, args)
}
func (c *RecorderConn) QueryContext(_ context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return &OneRow{Err: c.Recorder.FailsNext, Done: c.Recorder.NoRow}, c.Recorder.record(query, args)
}

type recorderTx BareConn

func (tx recorderTx) Commit() error   { return tx.Recorder.record("COMMIT", nil) }
func (tx recorderTx) Rollback() error { return tx.Recorder.record("ROLLBACK", nil) }

// A BareStmt is a statement without methods for contexts.
type BareStmt struct {
	Recorder *Recorder
	Text     string
}

func (s *BareStmt) Close() error  { return nil }
func (s *BareStmt) NumInput() int { return -1 }
func (s *BareStmt) Exec(args []driver.Value) (driver.Result, error) {
	return s.Recorder.executed(s.Text, numbered(args))
}
func (s *BareStmt) Query(args []driver.Value) (driver.Rows, error) {
	return &OneRow{Err: s.Recorder.FailsNext, Done: s.Recorder.NoRow}, s.Recorder.record(s.Text, numbered(args))
}

type RecorderStmt struct{ BareStmt }

func (s *RecorderStmt) ExecContext(_ context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.Recorder.executed(s.Text, args)
}
func (s *RecorderStmt) QueryContext(_ context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return &OneRow{Err: s.Recorder.FailsNext, Done: s.Recorder.NoRow}, s.Recorder.record(s.Text, args)
}

func numbered(values []driver.Value) []driver.NamedValue {
	args := make([]driver.NamedValue, len(values))
	for i, v := range values {
		args[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return args
}

// OneRow is rows with the single value 1, or with an error.
type OneRow struct {
	Err  error
	Done bool
}

func (r *OneRow) Columns() []string { return []string{"n"} }
func (r *OneRow) Close() error      { return nil }
func (r *OneRow) Next(dest []driver.Value) error {
	if r.Err != nil {
		return r.Err
	}
	if r.Done {
		return io.EOF
	}
	r.Done = true
	dest[0] = int64(1)
	return nil
}

// ErrStaleAt9 is SQLite's error for a stale token if the stored token is 9.
var ErrStaleAt9 = errors.New("bad JSON path: 'sqlfence:nonce:stale:0:9'")
