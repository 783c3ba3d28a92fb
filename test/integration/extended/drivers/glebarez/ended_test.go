package glebarez

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
)

// If the context ends during a multi-statement string, the driver may stop before any of its statements and report
// success. sqlfence must not report success for a guarded write that wasn't executed.
func TestEndedContext(t *testing.T) {
	file := dsn(filepath.Join(t.TempDir(), "test.db"))
	db, err := sqlfence.OpenDB(file, sqlfence.WithTable("books", sqlfence.RowFence("fence_token")))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	ctx := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books", Value: 9})
	for _, query := range []string{"CREATE TABLE books (id integer, fence_token integer)", "INSERT INTO books (id) VALUES (0)"} {
		if _, err := db.ExecContext(ctx, query); err != nil {
			t.Fatal(err)
		}
	}
	text := strings.Repeat("SELECT 1;", 300) + "UPDATE books SET id = id + 1"
	for n := range 1000 {
		ctx, cancel := context.WithTimeout(ctx, time.Duration(n%100)*20*time.Microsecond)
		before := book(t, db)
		_, err := db.ExecContext(ctx, text)
		cancel()
		if err == nil && book(t, db) == before {
			t.Fatalf("run %d is said to have succeeded, and has changed nothing", n)
		}
		if tx, err := db.BeginTx(t.Context(), nil); err != nil {
			t.Fatal(err)
		} else if err := tx.Rollback(); err != nil { // fails if the run has left a transaction open
			t.Fatal(err)
		}
	}
}

func book(t *testing.T, db *sql.DB) (id int) {
	t.Helper()
	if err := db.QueryRow("SELECT id FROM books").Scan(&id); err != nil {
		t.Fatal(err)
	}
	return id
}
