// Package ncruces runs the conformance suite over a driver that sqlfence doesn't know, as the driver's author would.
// The driver registers itself as "sqlite3", as mattn's driver does, so the two can't be linked into one program.
package ncruces

import (
	"database/sql/driver"
	"path/filepath"
	"testing"

	sqlite "github.com/ncruces/go-sqlite3/driver"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/conformance"
)

func TestConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("it is a driver of its own, and takes its time")
	}
	conformance.Run(t, conformance.Harness{
		Connector: func(t testing.TB) driver.Connector {
			file := filepath.ToSlash(filepath.Join(t.TempDir(), "test.db"))
			c, err := new(sqlite.SQLite).OpenConnector("file:" + file + "?_pragma=busy_timeout(120000)&_pragma=journal_mode(wal)&_pragma=synchronous(off)")
			if err != nil {
				t.Fatal(err)
			}
			return c
		},
		Skip: map[string]string{
			"empty statements": "the driver crashes on them, also alone",
		},
		Options: []sqlfence.Option{sqlfence.WithDialect(sqlfence.SQLite)},
	})
}

// In Observe mode a write to a table without the fence column must succeed on this driver. sqlfence recognises the
// failure by the driver's error code.
func TestObserveWithoutTheFenceColumn(t *testing.T) {
	if testing.Short() {
		t.Skip("it is a driver of its own, and takes its time")
	}
	c, err := new(sqlite.SQLite).OpenConnector("file:" + filepath.ToSlash(filepath.Join(t.TempDir(), "test.db")))
	if err != nil {
		t.Fatal(err)
	}
	db, err := sqlfence.OpenDB(c, sqlfence.WithDialect(sqlfence.SQLite), sqlfence.WithMode(sqlfence.Observe),
		sqlfence.WithTable("books", sqlfence.RowFence("fence_token")))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books", Value: 9})
	for _, query := range []string{"CREATE TABLE books (id integer)", "INSERT INTO books (id) VALUES (1)", "UPDATE books SET id = 2"} {
		if _, err := db.ExecContext(ctx, query); err != nil {
			t.Errorf("%s: %v", query, err)
		}
	}
}
