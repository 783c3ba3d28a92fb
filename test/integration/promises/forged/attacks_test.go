package forged_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/schema"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A user's value appears in a database's error: a column can't store it, or has it already. The holder of the newest
// token must get this error, not a refusal of sqlfence.
func TestG10ForgedRefusalOfAFreshHolder(t *testing.T) {
	columns := map[sqlfence.Dialect][]string{
		sqlfence.Postgres: {"uid uuid", "m mood", "n integer", "u text UNIQUE"},
		sqlfence.SQLite:   {"n integer CHECK (json_extract('{}', n) = 1)", "u text UNIQUE"},
		sqlfence.MySQL:    {"uid uuid", "m enum('glad', 'sad')", "n integer", "u varchar(100) UNIQUE"},
	}
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		sh := harness.NewShop(t, b, sqlfence.RowFence("fence_token"), sqlfence.Ledger())
		if b.Dialect == sqlfence.Postgres {
			sh.Exec(t, "CREATE TYPE mood AS ENUM ('glad', 'sad')")
		}
		for _, column := range columns[b.Dialect] {
			t.Run(column, func(t *testing.T) {
				name := column[:1]
				if name == "u" && column[1] != ' ' {
					name = "uid"
				}
				sh.Exec(t, "DROP TABLE books")
				sh.Exec(t, "CREATE TABLE books (id integer PRIMARY KEY, isbn varchar(20), price integer NOT NULL DEFAULT 10, fence_token bigint, "+column+")")
				sh.Reset(t, 7)
				for _, kind := range []string{"stale:0:9", "unknown:0:0", "scope:0:43", "ledger:0:9", "conflict:0:1"} {
					value := "sqlfence:" + kind
					sh.Reset(t, 7)
					if name == "u" {
						sh.Exec(t, "UPDATE books SET u = $1 WHERE id = 2", value)
					}
					unchanged := sh.Unchanged(t)
					w := harness.Write{Query: "UPDATE books SET " + name + " = $1 WHERE id = 1", Args: []any{value}}.As(b.Dialect)
					_, want := sh.Plain.ExecContext(t.Context(), w.Query, w.Args...)
					_, err := sh.DB.ExecContext(harness.Holding(t, 7), w.Query, w.Args...)
					wantBase(t, err, want)
					unchanged()
				}
			})
		}
	})
}

// wantBase fails the test unless err is the base driver's error, without an error of sqlfence.
func wantBase(t *testing.T, err, want error) {
	t.Helper()
	var temporary interface{ Temporary() bool }
	if want == nil || err == nil || err.Error() != want.Error() || errors.As(err, &temporary) && temporary.Temporary() {
		t.Errorf("%v, want the base driver's: %v", err, want)
	}
}

// The driver quotes an application's text, which reads like a seal's refusal, in an error of the roll-out's first step.
// The pool mustn't believe it: it would store negative tokens in a table without triggers, and then a program with
// RowFence alone would take every token for a newer one. An earlier version did so.
func TestG10OlderTokenBehindAForgedSeal(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect == sqlfence.SQLite {
			t.Skip("SQLite has no seals")
		}
		sh := harness.NewShop(t, b, sqlfence.RowFence("fence_token"), sqlfence.Sealed())
		alone := b.Fenced(t, sh.Source, harness.Books(sqlfence.RowFence("fence_token")))
		sh.Reset(t, 1)
		w := harness.Write{Query: "UPDATE books SET price = $1 WHERE id = 1", Args: []any{"sqlfence: table books is sealed: "}}.As(b.Dialect)
		_, want := sh.Plain.ExecContext(t.Context(), w.Query, w.Args...)
		_, err := sh.DB.ExecContext(harness.Holding(t, 9), w.Query, w.Args...)
		wantBase(t, err, want)
		if _, err := sh.DB.ExecContext(harness.Holding(t, 9), "UPDATE books SET price = 20 WHERE id = 1"); err != nil {
			t.Fatal(err)
		}
		if got := sh.State(t, true); got != "1:20@9 2:10@1 3:10@1" {
			t.Errorf("%s", got)
		}
		for _, mark := range []int64{9, -9} {
			sh.Exec(t, fmt.Sprintf("UPDATE books SET fence_token = %d WHERE id = 1", mark))
			var stale *sqlfence.StaleError
			_, err := alone.ExecContext(harness.Holding(t, 3), "UPDATE books SET price = 30 WHERE id = 1")
			if !errors.As(err, &stale) || stale.Current != 9 {
				t.Errorf("token 3 behind %d: %v", mark, err)
			}
		}
	})
}

// A value has the name of a seal's constraint. This must not make a permanent error one that should be retried.
func TestG10ForgedMarkIsNotTriedAgain(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		rules := []sqlfence.Rule{sqlfence.RowFence("fence_token")}
		if b.Dialect != sqlfence.SQLite {
			rules = append(rules, sqlfence.Sealed())
		}
		sh := harness.NewShop(t, b, rules...)
		sh.Reset(t, 1)
		if b.Dialect != sqlfence.SQLite {
			if err := schema.Seal(t.Context(), sh.DB); err != nil {
				t.Fatal(err)
			}
		}
		for _, value := range []string{"sqlfence_mark", `new row for relation "books" violates check constraint "sqlfence_mark"`} {
			w := harness.Write{Query: "UPDATE books SET price = $1 WHERE id = 1", Args: []any{value}}
			if b.Dialect == sqlfence.SQLite {
				w.Query = "UPDATE books SET price = json_extract('{}', $1) WHERE id = 1"
			}
			w = w.As(b.Dialect)
			proven := w
			if b.Dialect != sqlfence.SQLite {
				proven.Query = strings.Replace(w.Query, "SET ", "SET fence_token = -9, ", 1)
			}
			_, want := sh.Plain.ExecContext(t.Context(), proven.Query, w.Args...)
			tries := 0
			err := sqlfence.Retry(harness.Holding(t, 9), sh.DB, sqlfence.RetryOptions{}, func(ctx context.Context, tx *sql.Tx) error {
				tries++
				_, err := tx.ExecContext(ctx, w.Query, w.Args...)
				return err
			})
			wantBase(t, err, want)
			if tries != 1 {
				t.Errorf("%s: tried %d times", value, tries)
			}
		}
	})
}
