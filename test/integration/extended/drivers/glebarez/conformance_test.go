// Package glebarez runs the conformance suite over glebarez/go-sqlite, a fork of modernc's driver. The fork registers
// itself as "sqlite", as modernc's driver does, so the two can't be linked into one program.
package glebarez

import (
	"context"
	"database/sql/driver"
	"errors"
	"path/filepath"
	"testing"

	sqlite "github.com/glebarez/go-sqlite"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/conformance"
)

func TestConformance(t *testing.T) {
	conformance.Run(t, conformance.Harness{
		Connector: func(t testing.TB) driver.Connector {
			file := filepath.ToSlash(filepath.Join(t.TempDir(), "test.db"))
			return dsn("file:" + file + "?_pragma=busy_timeout(120000)&_pragma=journal_mode(wal)&_pragma=synchronous(off)")
		},
		Skip: map[string]string{
			"argument counts/registered": "the driver has other words for a missing argument where placeholders are numbered",
			"deadline":                   "the driver reads a query's rows to their end, whatever becomes of the context",
		},
	})
}

// The driver executes every statement of a multi-statement string. Under Query each statement takes the arguments that
// the previous statement has left; under Exec each statement starts with the first argument. So a guard's arguments
// could reach the wrong statement, and such strings must be refused.
func TestSeveralStatements(t *testing.T) {
	db, err := sqlfence.OpenDB(dsn(filepath.Join(t.TempDir(), "test.db")), sqlfence.WithTable("books", sqlfence.RowFence("fence_token")))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("CREATE TABLE books (id integer, fence_token integer)"); err != nil {
		t.Fatal(err)
	}
	ctx := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books", Value: 9})
	for _, query := range []string{
		"INSERT INTO books (id) VALUES (?); INSERT INTO books (id) VALUES (?)",
		"INSERT INTO books (id) VALUES (?); SELECT ?",
		"SELECT ?; INSERT INTO books (id) VALUES (?)",
	} {
		if _, err := db.ExecContext(ctx, query, 1, 2); !errors.Is(err, sqlfence.ErrUnguardable) {
			t.Errorf("Exec %s: %v", query, err)
		}
		rows, err := db.QueryContext(ctx, query, 1, 2)
		if !errors.Is(err, sqlfence.ErrUnguardable) {
			t.Errorf("Query %s: %v", query, err)
		}
		if err == nil {
			rows.Close()
		}
	}
	var n int
	if err := db.QueryRow("SELECT count(*) FROM books").Scan(&n); err != nil || n != 0 {
		t.Errorf("%d rows, %v", n, err)
	}
}

// dsn is a driver.Connector. The driver doesn't have a connector.
type dsn string

func (d dsn) Connect(context.Context) (driver.Conn, error) { return d.Driver().Open(string(d)) }
func (d dsn) Driver() driver.Driver                        { return new(sqlite.Driver) }
