package fencetest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/fencetest"
	"github.com/sqlfence/sqlfence/lease"
)

// price returns the price of book 1.
func price(t *testing.T, db *fencetest.DB) (price int) {
	t.Helper()
	if err := db.QueryRow("SELECT price FROM books WHERE id = 1").Scan(&price); err != nil {
		t.Fatal(err)
	}
	return price
}

// A holder can write. A paused holder is refused after a takeover, in every way of writing.
func TestStoppedWriter(t *testing.T) {
	ways := map[string]func(ctx context.Context, db *fencetest.DB) error{
		"db": func(ctx context.Context, db *fencetest.DB) error { return raisePrice(ctx, db.DB, 1) },
		"query": func(ctx context.Context, db *fencetest.DB) error {
			return db.QueryRowContext(ctx, "UPDATE books SET price = price + ? RETURNING price", 1).Scan(new(int))
		},
		"prepared": func(ctx context.Context, db *fencetest.DB) error {
			stmt, err := db.PrepareContext(ctx, "update books set price = price + 1 where id = ?")
			if err != nil {
				return err
			}
			_, err = stmt.ExecContext(ctx, 1)
			return errors.Join(err, stmt.Close())
		},
	}
	for name, write := range ways {
		for _, rule := range []sqlfence.Rule{sqlfence.Ledger(), sqlfence.RowFence("fence")} {
			t.Run(name, func(t *testing.T) {
				schema := books + "; ALTER TABLE books ADD COLUMN fence bigint NOT NULL DEFAULT 0"
				db := fencetest.Open(t, schema, sqlfence.WithTable("books", rule))
				ctx := db.Hold(t.Context(), "books")
				if err := write(ctx, db); err != nil || price(t, db) != 11 {
					t.Fatalf("a holder: %v, price %d", err, price(t, db))
				}
				db.Before("UPDATE Books", func() {
					if err := write(db.Hold(t.Context(), "books"), db); err != nil {
						t.Error(err)
					}
				})
				if err := write(ctx, db); !errors.Is(err, sqlfence.ErrStale) || price(t, db) != 12 {
					t.Errorf("a holder that stood still: %v, price %d", err, price(t, db))
				}
			})
		}
	}
}

// A process stands still until its lease has ended. Another process acquires the lease, and the first process writes
// late.
func TestEndLease(t *testing.T) {
	db := fencetest.Open(t, books, sqlfence.WithTable("books"))
	held, err := db.Leases.Acquire(t.Context(), "books", lease.TTL(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	db.EndLease(t.Context(), "books")
	next, err := db.Leases.Acquire(t.Context(), "books", lease.TTL(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if err := raisePrice(held.Context(), db.DB, 1); !errors.Is(err, sqlfence.ErrStale) {
		t.Errorf("the first holder: %v", err)
	}
	if err := raisePrice(next.Context(), db.DB, 1); err != nil || price(t, db) != 11 {
		t.Errorf("the next holder: %v, price %d", err, price(t, db))
	}
}

// failing records the failures that a helper reports, and Fatalf ends the helper, as in a test.
type failing struct {
	testing.TB
	said []string
	ends []func()
}

func (f *failing) Helper()           {}
func (f *failing) Cleanup(do func()) { f.ends = append(f.ends, do) }
func (f *failing) Errorf(format string, args ...any) {
	f.said = append(f.said, fmt.Sprintf(format, args...))
}
func (f *failing) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	panic(f)
}

// during returns the failures reported by do and by the cleanups, which it runs.
func (f *failing) during(do func()) []string {
	func() {
		defer func() {
			if r := recover(); r != nil && r != any(f) {
				panic(r)
			}
		}()
		do()
	}()
	for len(f.ends) > 0 {
		last := f.ends[len(f.ends)-1]
		f.ends = f.ends[:len(f.ends)-1]
		last()
	}
	return f.said
}

// A helper fails the test if a step is impossible, or if an expected event doesn't happen.
func TestFailuresOfStepsFailTheTest(t *testing.T) {
	table := sqlfence.WithTable("books")
	for want, do := range map[string]func(f testing.TB){
		"create the schema: SQL logic error: near":   func(f testing.TB) { fencetest.Open(f, "CREATE TABBLE x", table) },
		"open: sqlfence: table":                      func(f testing.TB) { fencetest.Open(f, books, sqlfence.WithTable("")) },
		"issue: sqlfence: invalid argument":          func(f testing.TB) { fencetest.Open(f, books, table).Hold(t.Context(), "") },
		`end a lease: "books" has none`:              func(f testing.TB) { fencetest.Open(f, books, table).EndLease(t.Context(), "books") },
		`no statement was sent that has "DELETE" in`: func(f testing.TB) { fencetest.Open(f, books, table).Before("DELETE", func() {}) },
	} {
		f := &failing{TB: t}
		said := f.during(func() { do(f) })
		if len(said) == 0 || !strings.HasPrefix(said[0], "fencetest: "+want) {
			t.Errorf("said %q, want %q", said, want)
		}
	}
}

// Match accepts the guarded form of the program's text, and no other text.
func TestMatchAcceptsOnlyTheGuardedStatement(t *testing.T) {
	db := fencetest.Open(t, books, sqlfence.WithTable("books", sqlfence.RowFence("fence")))
	for _, query := range []string{
		"UPDATE books SET price = ?\n\tWHERE id = ?", "DELETE FROM books WHERE id = 1", "INSERT INTO books (id, price) VALUES (?, ?)",
		"SELECT price FROM books",
	} {
		sent, err := sqlfence.Explain(db.DB, query)
		if err != nil || sent.Err != nil {
			t.Fatal(err, sent.Err)
		}
		if err := fencetest.Match(query, sent.SQL); err != nil {
			t.Error(err)
		}
		if err := fencetest.Match(query+" AND owner", sent.SQL); err == nil {
			t.Errorf("%s: matches more than was written", sent.SQL)
		}
	}
}
