package observe_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// Observe mode breaks no program: if the guard fails, for whatever reason, the statement is run as the application
// wrote it.

// unguardedBooks recreates books without the columns that guards need.
func unguardedBooks(t *testing.T, w *harness.Watched) {
	t.Helper()
	w.Exec(t, "DROP TABLE books")
	w.Exec(t, "CREATE TABLE books (id integer PRIMARY KEY, isbn varchar(20) UNIQUE, price integer DEFAULT 10)")
	w.Exec(t, "INSERT INTO books (id, isbn) VALUES (1, 'i1'), (2, 'i2')")
	w.Events = nil
	w.Counter.Reset()
}

func prices(t *testing.T, w *harness.Watched) string {
	t.Helper()
	rows, err := w.Plain.QueryContext(t.Context(), "SELECT id, price FROM books ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var id, price int
		if err := rows.Scan(&id, &price); err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%d:%d", id, price))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, " ")
}

func TestObserveWithoutWhatTheGuardNeeds(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		for _, missing := range []struct {
			name  string
			rules []sqlfence.Rule
			drop  string
		}{
			{"fence column", []sqlfence.Rule{sqlfence.RowFence("fence_token")}, ""},
			{"serial column", []sqlfence.Rule{sqlfence.Serial("serial")}, ""},
			{"fencing_tokens", nil, "DROP TABLE fencing_tokens"},
			{"key column", []sqlfence.Rule{sqlfence.Ledger(), sqlfence.Key("other"), sqlfence.Optional()}, ""},
		} {
			t.Run(missing.name, func(t *testing.T) {
				w := harness.Watch(t, b, harness.ObserveMode, harness.Books(missing.rules...))
				w.Exec(t, "INSERT INTO fencing_tokens (name, token) VALUES ('books', 9)")
				if missing.drop != "" {
					w.Exec(t, missing.drop)
				}
				ctx := sqlfence.WithFence(harness.Holding(t, 9), sqlfence.Token{Name: "books/1", Value: 9})
				for _, tt := range []struct {
					query, left string
					args        []any
				}{
					{"UPDATE books SET price = $1 WHERE id = 1 RETURNING id", "1:30 2:10", []any{30}},
					{"UPDATE books SET price = 30 WHERE id = 1 RETURNING id", "1:30 2:10", nil},
					{"WITH d AS (SELECT 1) DELETE FROM books WHERE id = $1 RETURNING id", "2:10", []any{1}},
					{"INSERT INTO books (id, price) VALUES ($1, 70) ON CONFLICT (id) DO UPDATE SET price = 5 RETURNING id", "1:5 2:10", []any{1}},
				} {
					if missing.name == "serial column" && strings.Contains(tt.query, "DELETE") {
						continue // a DELETE needs no serial column
					}
					unguardedBooks(t, w)
					if !w.Runs(t, tt.query, tt.args...) {
						continue // MariaDB's WITH stands before SELECT only
					}
					for name, run := range harness.Ways {
						unguardedBooks(t, w)
						if err := run(ctx, w.DB, tt.query, tt.args...); err != nil {
							t.Errorf("%s by %s: %v", tt.query, name, err)
						}
						wantBroken(t, w, tt.query, tt.left)

						unguardedBooks(t, w)
						err := w.InTx(ctx, func(tx *sql.Tx) error {
							if _, err := tx.ExecContext(ctx, "INSERT INTO pens (id) VALUES (1)"); err != nil {
								return err
							}
							return errors.Join(run(ctx, tx, tt.query, tt.args...), run(ctx, tx, "DELETE FROM pens"))
						})
						if err != nil {
							t.Errorf("%s by %s in a transaction: %v", tt.query, name, err)
						}
						wantBroken(t, w, tt.query, tt.left)
					}
				}
				if missing.drop != "" && b.AsksByFunction() {
					return // the connection reports the missing table before it sends the write
				}
				for name, run := range harness.Ways { // a write that fails without sqlfence, too
					unguardedBooks(t, w)
					const query = "UPDATE books SET isbn = 'i2' WHERE id = 1 RETURNING id"
					errRaw, err := run(ctx, w.Plain, query), run(ctx, w.DB, query)
					if errRaw == nil || harness.ErrorText(err) != harness.ErrorText(errRaw) {
						t.Errorf("%s: %v, want %v", name, err, errRaw)
					}
					w.WantEvents(t, query, nil)
				}
			})
		}
	})
}

// wantBroken fails the test unless the observer was told of one statement, with the database's error, and unless the
// books have the prices of left.
func wantBroken(t *testing.T, w *harness.Watched, query, left string) {
	t.Helper()
	if len(w.Events) != 1 || w.Events[0].Kind != sqlfence.WouldRefuse || w.Events[0].Query != w.Text(t, query) || w.Events[0].Err == nil {
		t.Errorf("%s: the observer was told %v", query, w.Events)
	}
	if got := prices(t, w); got != left {
		t.Errorf("%s left %s, want %s", query, got, left)
	}
}

// Observe mode leaves a SQLite table's own ON CONFLICT clause in force: the table goes on resolving conflicts as
// declared.
func TestObserveDeclaredConflicts(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.SQLite {
			t.Skip("they are SQLite's")
		}
		for how, left := range map[string]string{"REPLACE": "1:30 2:10", "IGNORE": "1:10 2:10"} {
			w := harness.Watch(t, b, harness.ObserveMode, harness.Books(sqlfence.RowFence("fence_token")))
			w.Exec(t, "DROP TABLE books")
			w.Exec(t, "CREATE TABLE books (id integer PRIMARY KEY ON CONFLICT "+how+", price integer DEFAULT 10, fence_token bigint)")
			for name, run := range harness.Ways {
				w.Exec(t, "DELETE FROM books")
				w.Exec(t, "INSERT INTO books VALUES (1, 10, 9), (2, 10, 9)")
				w.Events = nil
				if err := run(harness.Holding(t, 10), w.DB, "INSERT INTO books (id, price) VALUES (1, 30)"); err != nil {
					t.Errorf("%s by %s: %v", how, name, err)
				}
				wantBroken(t, w, "INSERT INTO books (id, price) VALUES (1, 30)", left)
			}
		}
	})
}

// After a text has failed, sqlfence doesn't know whether a transaction is open. The next guarded statement finds out.
func TestObserveAfterFailedText(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.Postgres {
			t.Skip("an error ends no transaction in SQLite")
		}
		for _, tt := range []struct {
			before, text string
			fails        bool
			after        string // the statement that ends the transaction, if text leaves one open
		}{
			{"", "BEGIN; SELECT 1/0; END", true, "ROLLBACK"},
			{"", "SELECT 1/0; BEGIN", true, ""},
			{"BEGIN", "COMMIT; SELECT 1/0", true, ""},
			{"BEGIN", "END; BEGIN", false, "COMMIT"},
			{"", "COMMIT; BEGIN", false, "COMMIT"},
			{"", "CREATE FUNCTION two() RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT 1; SELECT 2; END; DROP FUNCTION two; BEGIN", false, "COMMIT"},
			{"BEGIN", "CREATE FUNCTION two() RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT 1; SELECT 2; END; DROP FUNCTION two; COMMIT", false, ""},
			{"BEGIN", "ROLLBACK; BEGIN; COMMIT; SELECT 1/0; BEGIN", true, ""},
			{"", "BEGIN; SAVEPOINT a; SELECT 1/0", true, "ROLLBACK"},
			{"", "BEGIN; SAVEPOINT b; SELECT 1/0", true, "ROLLBACK TO b"},
		} {
			t.Run(tt.before+" "+tt.text, func(t *testing.T) {
				w := harness.Watch(t, b, harness.ObserveMode, harness.Books(sqlfence.RowFence("fence_token")))
				w.Clear(t, 9)
				c, err := w.DB.Conn(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				send := func(ctx context.Context, query string) error {
					if query == "" {
						return nil
					}
					_, err := c.ExecContext(ctx, query)
					return err
				}
				if err := send(t.Context(), tt.before); err != nil {
					t.Fatal(err)
				}
				if err := send(t.Context(), tt.text); (err != nil) != tt.fails {
					t.Fatal(err)
				}
				if tt.fails && tt.after != "" { // a failed transaction accepts no statement
					if err := send(harness.Holding(t, 8), "UPDATE books SET price = 30 WHERE id = 1"); err == nil {
						t.Error("a write in a failed transaction")
					}
					if err := send(t.Context(), tt.after); err != nil {
						t.Error(err)
					}
					tt.after = map[string]string{"ROLLBACK": "", "ROLLBACK TO b": "COMMIT"}[tt.after]
				}
				if err := send(harness.Holding(t, 8), "UPDATE books SET price = 30 WHERE id = 1"); err != nil {
					t.Error(err)
				}
				if err := send(t.Context(), tt.after); err != nil {
					t.Error(err)
				}
				if got := w.State(t, true); got != "1:30@9 2:10@9 3:10@9" {
					t.Errorf("books are %s", got)
				}
			})
		}
	})
}

// A table of SQLite may declare that a violated constraint keeps the rows written before it, or ends the transaction;
// and a full disk ends it. In these cases Observe mode doesn't run a statement again, even if the guard had refused it
// first.
func TestObserveWhereATableDeclaresWhatAConflictLeaves(t *testing.T) {
	const bump = "UPDATE books SET price = price + 1, isbn = CASE id WHEN 2 THEN %s ELSE isbn END"
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.SQLite {
			t.Skip("a failed statement leaves nothing in PostgreSQL")
		}
		for _, rule := range harness.Fences {
			for _, tt := range []struct{ declared, taken string }{
				{"UNIQUE ON CONFLICT FAIL", "'i3'"},
				{"NOT NULL ON CONFLICT FAIL", "NULL"},
				{"UNIQUE ON CONFLICT ROLLBACK", "'i3'"},
				{"NOT NULL ON CONFLICT ROLLBACK", "NULL"},
			} {
				for _, query := range []string{
					fmt.Sprintf(bump, tt.taken),
					fmt.Sprintf("INSERT INTO books (isbn, price) VALUES ('i5', 1), (%s, 1)", tt.taken),
					fmt.Sprintf("INSERT INTO books (isbn, price) VALUES (%s, 1)", strings.Replace(tt.taken, "i3", "i4", 1)),
				} {
					for _, mark := range []int64{9, 50} {
						left := make(map[string]string)
						for _, of := range []string{"raw", "fenced"} {
							w := harness.Watch(t, b, harness.ObserveMode, harness.Books(rule.Rule))
							w.Exec(t, "DROP TABLE books")
							w.Exec(t, "CREATE TABLE books (id integer PRIMARY KEY, isbn text "+tt.declared+", price integer, fence_token integer)")
							w.Exec(t, fmt.Sprintf("INSERT INTO books VALUES (1, 'i1', 10, %d), (2, 'i2', 10, 3), (3, 'i3', 10, 3)", mark))
							db := w.DB
							if of == "raw" {
								db = w.Plain
							}
							tx, err := db.BeginTx(t.Context(), nil)
							if err != nil {
								t.Fatal(err)
							}
							if _, err := tx.ExecContext(harness.Holding(t, 10), "INSERT INTO books (isbn, price) VALUES ('i4', 10)"); err != nil {
								t.Fatal(err)
							}
							_, err = tx.ExecContext(harness.Holding(t, 10), query)
							committed := tx.Commit()
							left[of] = fmt.Sprint(prices(t, w), ", failed: ", err != nil, ", committed: ", committed == nil)
						}
						if left["raw"] != left["fenced"] {
							t.Errorf("%s, %s, mark %d: %s\n   raw %s\nfenced %s", rule.Name, tt.declared, mark, query, left["raw"], left["fenced"])
						}
					}
				}
			}
		}
	})
}
