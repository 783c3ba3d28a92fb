// Package memdb is a base driver and a database for tests that need neither a
// server nor cgo: in memory, deterministic, and with as many or as few of
// database/sql/driver's optional interfaces as a test asks for.
//
// It understands the little of SQLite's SQL that sqlfence and its tests send,
// and computes it: guards are evaluated, not recognised. What it doesn't know is
// a syntax error. Writers wait for each other, a statement is applied whole or
// not at all, and readers see what is committed.
//
// It takes the place of no real database: what a guard does in one is shown with
// that one.
package memdb

import (
	"context"
	"database/sql/driver"
	"fmt"
	"sync"
	"time"
)

// A Database is empty at first. It is safe for concurrent use.
type Database struct {
	writing chan struct{} // holds one element while a writer is at work
	scripts sync.Map      // by their texts

	mu        sync.Mutex
	committed tables
}

// New returns an empty database.
func New() *Database {
	return &Database{writing: make(chan struct{}, 1), committed: tables{}}
}

// Connector returns a connector to the database, whose connections are of the form.
func (db *Database) Connector(form Form) driver.Connector { return connector{db, form} }

// script returns what a text says, which is parsed once.
func (db *Database) script(text string) (*script, error) {
	if known, ok := db.scripts.Load(text); ok {
		return known.(*script), nil
	}
	s, err := parse(text)
	if err == nil {
		db.scripts.Store(text, s)
	}
	return s, err
}

func (db *Database) current() tables {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.committed
}

func (db *Database) commit(ts tables) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.committed = ts
}

// lock waits until no other connection writes.
func (db *Database) lock(ctx context.Context) error {
	select {
	case db.writing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (db *Database) unlock() { <-db.writing }

// An Error is what the database has against a statement.
type Error struct{ Message string }

// Error implements error.
func (e *Error) Error() string { return e.Message }

// A failure is the panic by which a statement ends early.
type failure struct{ err error }

func errorf(format string, args ...any) failure {
	return failure{&Error{fmt.Sprintf(format, args...)}}
}

// caught sets err to the failure that the deferring function ends with.
func caught(err *error) {
	switch f := recover().(type) {
	case nil:
	case failure:
		*err = f.err
	default:
		panic(f)
	}
}

// An execution is one of a statement.
type execution struct {
	ctx    context.Context
	tables tables
	args   []driver.Value
	lastID int64
}

func (e *execution) table(name string) *table {
	if t := e.tables[name]; t != nil {
		return t
	}
	panic(errorf("no such table: %s", name))
}

// inserted notes the id of a row, its first column.
func (e *execution) inserted(row []driver.Value) {
	if id, ok := row[0].(int64); ok {
		e.lastID = id
	}
}

// pause takes its time, unless the context ends before, and returns 1.
func (e *execution) pause(d time.Duration) driver.Value {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return int64(1)
	case <-e.ctx.Done():
		panic(failure{e.ctx.Err()})
	}
}

// A result is what a statement has brought.
type result struct {
	columns          []column
	rows             [][]driver.Value
	err              error // after the rows
	affected, lastID int64
}

// all returns the rows where none may fail.
func (r *result) all() [][]driver.Value {
	if r.err != nil {
		panic(failure{r.err})
	}
	return r.rows
}
