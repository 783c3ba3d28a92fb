package conformance

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/sqlfence/sqlfence"
)

// A kit is the common part of a [side] (transparency) and a [fenced] (fencing): a fresh database, its dialect, and the
// failures that a check has found.
type kit struct {
	harness Harness
	*dialect
	connector driver.Connector
	database  string          // its name, where errors contain it
	plain     *sql.DB         // the driver alone, for looking and setting up
	ctx       context.Context // carries token 5 of the books

	closers  []func() error
	failMu   *sync.Mutex
	failures []string
}

func newKit(t testing.TB, h Harness, d sqlfence.Dialect) kit {
	t.Helper()
	k := kit{harness: h, dialect: dialectOf(d), connector: h.Connector(t), ctx: holding(5), failMu: new(sync.Mutex)}
	k.plain = k.closing(sql.OpenDB(sharing{k.connector}), nil)
	if k.dialect.name != "" {
		if err := k.plain.QueryRow(k.dialect.name).Scan(&k.database); err != nil {
			t.Fatal(err)
		}
	}
	return k
}

// sharing hides io.Closer, so that the connector stays open when a database that uses it is closed.
type sharing struct{ driver.Connector }

func holding(value int64) context.Context {
	return sqlfence.WithFence(context.Background(), sqlfence.Token{Name: "books", Value: value})
}

// stopped is the panic that ends a check early, with the reason.
type stopped string

// endIfStopped, which must be deferred, recovers from a panic with stopped, and records the reason as a failure.
func (k *kit) endIfStopped() {
	switch r := recover().(type) {
	case nil:
	case stopped:
		k.errorf("%s", string(r))
	default:
		panic(r)
	}
}

// must returns v, or ends the check if err isn't nil. Only the check's own goroutine may call it.
func must[T any](v T, err error) T {
	if err != nil {
		panic(stopped("unexpected error: " + text(err)))
	}
	return v
}

func errorOf[T any](_ T, err error) error { return err }

// errorf notes a failure. It may be called from any goroutine.
func (k *kit) errorf(format string, args ...any) {
	k.failMu.Lock()
	defer k.failMu.Unlock()
	k.failures = append(k.failures, fmt.Sprintf(format, args...))
}

// fatalf notes a failure and ends the check. Only the check's own goroutine may call it.
func (k *kit) fatalf(format string, args ...any) {
	panic(stopped(fmt.Sprintf(format, args...)))
}

func (k *kit) must(err error) {
	if err != nil {
		k.fatalf("unexpected error: %s", text(err))
	}
}

func (k *kit) reason() string { return shorten(k.failures) }

// shorten joins the first few failures, because further failures add no information.
func shorten(failures []string) string {
	const most = 8
	if n := len(failures); n > most {
		failures = append(failures[:most:most], fmt.Sprintf("and %d more", n-most))
	}
	return strings.Join(failures, "\n")
}

// closing closes db when the check ends.
func (k *kit) closing(db *sql.DB, err error) *sql.DB {
	k.must(err)
	k.closers = append(k.closers, db.Close)
	return db
}

func (k *kit) cleanup() {
	for i := len(k.closers) - 1; i >= 0; i-- {
		if err := k.closers[i](); err != nil {
			k.errorf("closing: %v", err)
		}
	}
}

// exec executes with the driver alone.
func (k *kit) exec(query string) {
	if _, err := k.plain.ExecContext(context.Background(), k.bind(query)); err != nil {
		k.fatalf("the driver alone: %s: %v", query, err)
	}
}

func (k *kit) create() {
	k.exec(`CREATE TABLE books (id integer PRIMARY KEY, isbn varchar(40) UNIQUE, price integer NOT NULL DEFAULT 10,
		weight double precision, cover ` + k.dialect.blob + `, printed timestamp NULL, list decimal(10,2), fence_token bigint)`)
	k.exec("INSERT INTO books (id, isbn, weight) VALUES (1, 'i1', 0.5), (2, 'i2', 1.5), (3, 'i3', NULL)")
}
