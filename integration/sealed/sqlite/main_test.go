// Package sqlite_test has the tests of sealed tables that are SQLite's: tables of every
// shape, and the ways that SQLite has of writing to them.
package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/integration/harness"
	"github.com/sqlfence/sqlfence/schema"
	"github.com/sqlfence/sqlfence/tokens"
)

func TestMain(m *testing.M) { harness.Main(m) }

// bases are the drivers of SQLite.
func bases() (found []harness.Base) {
	for _, b := range harness.Bases {
		if b.Dialect == sqlfence.SQLite {
			found = append(found, b)
		}
	}
	return found
}

// each runs a test for each driver.
func each(t *testing.T, test func(t *testing.T, b harness.Base)) {
	for _, b := range bases() {
		t.Run(b.Name, func(t *testing.T) { test(t, b) })
	}
}

// A lab is a database with the table books.
type lab struct {
	harness.Base
	dsn  string
	bare *sql.DB // one connection of the driver alone
	db   *sql.DB // fenced
	left int     // how many marks were negative
}

// newLab creates the database by a script, and seals books.
func newLab(t testing.TB, b harness.Base, script string, rules ...sqlfence.Rule) *lab {
	t.Helper()
	l := newUnsealed(t, b, script, rules...)
	l.seal(t)
	return l
}

func newUnsealed(t testing.TB, b harness.Base, script string, rules ...sqlfence.Rule) *lab {
	t.Helper()
	dsn := b.DSN(t)
	l := &lab{Base: b, dsn: dsn, bare: b.Raw(t, dsn)}
	l.bare.SetMaxOpenConns(1)
	for _, stmt := range strings.Split(script, ";\n") {
		l.exec(t, stmt)
	}
	l.db = l.Fenced(t, dsn, sqlfence.WithTable("books", append([]sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Sealed()}, rules...)...))
	return l
}

func (l *lab) seal(t testing.TB) {
	t.Helper()
	if err := schema.Seal(t.Context(), l.db); err != nil {
		t.Fatal(err)
	}
}

// issue creates the ledger and adopts a token.
func (l *lab) issue(t testing.TB, name string, value int64) {
	t.Helper()
	store, err := tokens.New(l.db)
	if err == nil {
		err = store.Setup(t.Context())
	}
	if err == nil {
		err = store.Adopt(t.Context(), sqlfence.Token{Name: name, Value: value})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (l *lab) exec(t testing.TB, query string) {
	t.Helper()
	if _, err := l.bare.ExecContext(t.Context(), query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// rows returns what a query finds, a text for each row.
func rows(t testing.TB, db *sql.DB, query string) (found []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	values, into := make([]sql.NullString, len(names)), make([]any, len(names))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		var row []string
		for _, v := range values {
			if v.Valid {
				row = append(row, v.String)
			} else {
				row = append(row, "NULL")
			}
		}
		found = append(found, strings.Join(row, " "))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}

// want compares the rows of books.
func (l *lab) want(t testing.TB, want ...string) {
	t.Helper()
	if got := rows(t, l.bare, "SELECT * FROM books ORDER BY 1"); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("books are\n%q, want\n%q", got, want)
	}
}

// holding returns a context with a token of books.
func holding(t testing.TB, value int64) context.Context {
	return sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books", Value: value})
}

const plainBooks = `CREATE TABLE books (id integer PRIMARY KEY, price integer, title text UNIQUE, fence_token integer NOT NULL DEFAULT 0);
INSERT INTO books VALUES (1, 10, 'a', 7), (2, 20, 'b', 7), (3, 30, 'c', 0)`
