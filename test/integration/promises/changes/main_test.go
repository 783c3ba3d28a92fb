package changes_test

import (
	"database/sql"
	"testing"

	"github.com/sqlfence/sqlfence/changes"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

func TestMain(m *testing.M) {
	harness.Main(m)
}

const createBooks = "CREATE TABLE books (id int PRIMARY KEY, price int NOT NULL)"

// setup creates the tables books, with three rows, and pens, and counts both.
func setup(t testing.TB, db *sql.DB) *changes.Counter {
	t.Helper()
	for _, query := range []string{
		createBooks, "CREATE TABLE pens (id int PRIMARY KEY, price int NOT NULL)",
		"INSERT INTO books (id, price) VALUES (1, 10), (2, 10), (3, 10)",
	} {
		exec(t, db, query)
	}
	return counting(t, db, "books", "pens")
}

// counting returns a counter that has been set up for tables.
func counting(t testing.TB, db *sql.DB, tables ...string) *changes.Counter {
	t.Helper()
	counter, err := changes.New(db)
	if err != nil {
		t.Fatal(err)
	}
	if err := counter.Setup(t.Context(), tables...); err != nil {
		t.Fatal(err)
	}
	return counter
}

type execer interface {
	Exec(query string, args ...any) (sql.Result, error)
}

func exec(t testing.TB, db execer, query string, args ...any) {
	t.Helper()
	if _, err := db.Exec(query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func count(t testing.TB, counter *changes.Counter, tables ...string) int64 {
	t.Helper()
	n, err := counter.Count(t.Context(), tables...)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// wantRaised calls do, and fails the test unless do has raised the count of books.
func wantRaised(t testing.TB, counter *changes.Counter, what string, do func()) {
	t.Helper()
	before := count(t, counter, "books")
	do()
	if after := count(t, counter, "books"); after <= before {
		t.Errorf("%s: the count was %d, and is %d; want more", what, before, after)
	}
}

// wantSame calls do, and fails the test if do has changed the count of books.
func wantSame(t testing.TB, counter *changes.Counter, what string, do func()) {
	t.Helper()
	before := count(t, counter, "books")
	do()
	if after := count(t, counter, "books"); after != before {
		t.Errorf("%s: the count was %d, and is %d; want the same", what, before, after)
	}
}

// begin begins a transaction that ends with the test at the latest.
func begin(t testing.TB, db *sql.DB, level sql.IsolationLevel) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: level})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

func commit(t testing.TB, tx *sql.Tx) {
	t.Helper()
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}
