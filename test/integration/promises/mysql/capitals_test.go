package mysql_test

import (
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/rowlock"
	seals "github.com/sqlfence/sqlfence/schema"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
	"github.com/sqlfence/sqlfence/verify"
)

// sqlfence's own statements must spell a table's name as it was registered, because most servers distinguish capital
// letters.
func TestTablesInCapitals(t *testing.T) {
	for _, name := range []string{"Books", "`Books`", "Shop%s.Books", "`Shop%s`.`Books`"} {
		dsn := harness.MySQL.DSN(t)
		plain := harness.MySQL.Raw(t, dsn)
		if name[0] == 'S' || name[1] == 'S' {
			var database string
			if err := plain.QueryRow("SELECT DATABASE()").Scan(&database); err != nil {
				t.Fatal(err)
			}
			name = fmt.Sprintf(name, database)
			harness.MustExec(t, plain, "CREATE DATABASE `Shop"+database+"`")
			defer harness.MustExec(t, plain, "DROP DATABASE `Shop"+database+"`")
		}
		harness.MustExec(t, plain, "CREATE TABLE "+name+" (Id integer PRIMARY KEY, Price integer, Serial bigint NOT NULL DEFAULT 1, EditedBy integer, EditedSince bigint, EditedExpiry bigint)")
		harness.MustExec(t, plain, "INSERT INTO "+name+" (Id, Price) VALUES (1, 10), (2, 10)")
		db := harness.MySQL.Fenced(t, dsn, sqlfence.WithTable(name, sqlfence.Resource("books"), sqlfence.RowFence("Fence_Token"), sqlfence.Serial("Serial"),
			sqlfence.Sealed()))
		if err := seals.AddFence(t.Context(), db, name, "Fence_Token"); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		lockInCapitals(t, db, name)
		if err := seals.Seal(t.Context(), db); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		found, err := verify.Check(t.Context(), db)
		for _, f := range found {
			if f.Level != slog.LevelInfo {
				t.Errorf("%s: %v", name, f)
			}
		}
		if err != nil {
			t.Error(err)
		}
		writeInCapitals(t, db, name)
		if err := seals.Unseal(t.Context(), db); err != nil {
			t.Fatal(err)
		}
		rotateInCapitals(t, db, name)
	}
}

func lockInCapitals(t *testing.T, db *sql.DB, name string) {
	t.Helper()
	locks, err := rowlock.New(db, name, rowlock.WithKey("Id"), rowlock.WithSerial("Serial"), rowlock.WithColumns("EditedBy", "EditedSince", "EditedExpiry"))
	if err == nil {
		err = locks.Check(t.Context())
	}
	if err == nil {
		_, err = locks.Request(t.Context(), rowlock.Edit{ID: 1, User: 5, Serial: 1})
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func writeInCapitals(t *testing.T, db *sql.DB, name string) {
	t.Helper()
	// The write is a connection's first statement, in a transaction, and the connection doesn't know the seal yet.
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx := sqlfence.WithEditor(sqlfence.WithSerial(of("books", 7), 1), 5)
	for _, query := range []string{"UPDATE " + name + " SET Price = 11 WHERE Id = 1", "DELETE FROM " + name + " WHERE Id = 2"} {
		if _, err := tx.ExecContext(ctx, query); err != nil {
			t.Errorf("%s: %v", query, err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Error(err)
	}
	if _, err := db.ExecContext(sqlfence.WithEditor(sqlfence.WithSerial(of("books", 6), 2), 5), "UPDATE "+name+" SET Price = 0 WHERE Id = 1"); !errors.Is(err, sqlfence.ErrStale) {
		t.Errorf("stale: %v", err)
	}
}

func rotateInCapitals(t *testing.T, db *sql.DB, name string) {
	t.Helper()
	store := harness.NewStore(t, db)
	err := store.Setup(t.Context())
	if err == nil {
		err = store.Adopt(t.Context(), sqlfence.Token{Name: "books", Value: 7})
	}
	if err == nil {
		_, err = db.ExecContext(sqlfence.Bypass(t.Context(), "a mark that was never issued"),
			"UPDATE "+name+" SET Fence_Token = 800000000000000")
	}
	if err != nil {
		t.Fatal(err)
	}
	if rows, err := store.Rotate(t.Context(), "books", tokens.Mark{Table: name, Column: "Fence_Token"}); err != nil || rows != 1 {
		t.Errorf("%s: Rotate: %d, %v", name, rows, err)
	}
}
