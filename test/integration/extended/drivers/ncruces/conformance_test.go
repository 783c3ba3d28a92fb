// Package ncruces runs the conformance suite over a driver that sqlfence doesn't
// know, as the driver's author would. It has a folder of its own because the
// driver takes the name sqlite3, as mattn's does.
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

// Observe mode breaks nothing on this driver either: it reads the code of its errors.
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
