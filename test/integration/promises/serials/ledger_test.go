package serials_test

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

// A conflict of serials, a lock or a missing row is reported only after the ledger's check. Each statement checks the
// ledger once, even if it has waited for the row.

// askedShop returns a shop whose books have the rules whose errors come after the ledger's check.
func askedShop(t *testing.T, s harness.Setting, rules ...sqlfence.Rule) *harness.Shop {
	return lockShop(t, s, "integer", append(rules, sqlfence.Ledger(), sqlfence.Serial("serial"))...)
}

// start sends a write in a goroutine. The channel is closed after the response.
func start(ctx context.Context, s *harness.Shop, f harness.Form, w harness.Write) (<-chan struct{}, *error) {
	done, result := make(chan struct{}), new(error)
	go func() {
		defer close(done)
		_, *result = f.Run(ctx, s.DB, w)
	}()
	return done, result
}

var askedRules = map[string][]sqlfence.Rule{"ledger": nil, "both": {sqlfence.RowFence("fence_token")}}

// An item of the statement's WITH clause must not replace the guard's item of the same name, because the guard would
// then throw no error.
func TestLedgerIsNotShadowed(t *testing.T) {
	harness.EachPostgres(t, func(t *testing.T, s harness.Setting) {
		sh := askedShop(t, s)
		for _, query := range []string{
			"WITH x AS (WITH sqlfence_newest_0 AS (SELECT false AS newest) UPDATE books SET price = 20, serial = 1 WHERE id = 1 RETURNING id) SELECT * FROM x",
			"WITH x AS (WITH sqlfence_newest_0 AS (SELECT false AS newest) DELETE FROM books WHERE id = 1 RETURNING id) SELECT * FROM x",
			`INSERT INTO books (id, price) WITH sqlfence_newest_0 AS (SELECT false AS newest) SELECT 1, 20 ON CONFLICT (id) DO UPDATE SET price = 20`,
			`UPDATE books SET price = (WITH sqlfence_newest_0 AS (SELECT false AS newest) SELECT 20 FROM sqlfence_newest_0) WHERE id = 1`,
		} {
			lock(t, sh, "42", lockSince, lockExpiry)
			sh.Raise(t, "books", 8)
			if _, err := sh.DB.ExecContext(harness.Holding(t, 8), query); !errors.Is(err, sqlfence.ErrUnguardable) && !errors.Is(err, sqlfence.ErrLocked) {
				t.Errorf("%s: %v", query, err)
			}
			sh.WantVersions(t, "1:10#7 2:10#1 3:10#1")
		}
	})
}

// The guard reads the ledger in the only typed value of a new row, which may be the row's last value. The serial
// follows it.
func TestLastValueOfNewRowAsksTheLedger(t *testing.T) {
	harness.EachPostgres(t, func(t *testing.T, s harness.Setting) {
		sh := askedShop(t, s)
		sh.Reset(t, 8)
		for _, values := range []string{"((SELECT 4), 5)", "((SELECT 5), abs(-5)), (6, (SELECT 5))", "((SELECT 7),5)ON CONFLICT DO NOTHING"} {
			query := "INSERT INTO books (id, price) VALUES " + values
			_, err := sh.DB.ExecContext(harness.Holding(t, 7), query)
			harness.WantStale(t, err, 7, 8)
			if _, err := sh.DB.ExecContext(harness.Holding(t, 8), query); err != nil {
				t.Errorf("%s: %v", query, err)
			}
		}
		sh.WantVersions(t, "1:10#null 2:10#null 3:10#null 4:5#1 5:5#1 6:5#1 7:5#1")
	})
}

func TestLedgerIsAskedFirst(t *testing.T) {
	harness.EachPostgres(t, func(t *testing.T, s harness.Setting) {
		for name, rules := range askedRules {
			sh := askedShop(t, s, rules...)
			for _, w := range harness.RowWrites {
				for _, change := range []string{"serial = 8", "editedby = 42, editedexpiry = 'infinity'", "serial = 8, editedby = 42, editedexpiry = 'infinity'", "price = 5"} {
					for _, issues := range []bool{false, true} {
						t.Run(fmt.Sprint(name, "/", w.Name, "/", change, "/", issues), func(t *testing.T) {
							sh.Reset(t, 8)
							sh.Exec(t, "UPDATE books SET serial = 7")
							b := sh.Block(t, harness.Write{})
							if _, err := b.Tx.Exec("UPDATE books SET " + change + " WHERE id = 1"); err != nil {
								t.Fatal(err)
							}
							done, result := start(sqlfence.WithSerial(harness.Holding(t, 8), 7), sh, harness.Forms[0], w)
							sh.WantBlocked(t, b.PID, done)
							if issues {
								if token, err := sh.Issue(t.Context()); token != 9 || err != nil {
									t.Fatalf("issue: %d, %v", token, err)
								}
							}
							if err := b.Tx.Commit(); err != nil {
								t.Fatal(err)
							}
							<-done
							switch err := *result; {
							case s.Level != sql.LevelReadCommitted && harness.RefusedByIsolation(err):
							case issues:
								harness.WantStale(t, err, 8, 9)
							case strings.HasPrefix(change, "serial"):
								harness.WantConflict(t, err, 7, 8)
							case strings.HasPrefix(change, "editedby"):
								harness.WantError(t, err, sqlfence.ErrLocked)
							case err != nil:
								t.Error(err)
							}
						})
					}
				}
			}
		}
	})
}

// A write changes a first row and waits for a second row. Meanwhile the next token is issued, because the write locks
// the ledger's row only after all its rows.
func TestLedgerIsAskedLast(t *testing.T) {
	harness.EachPostgres(t, func(t *testing.T, s harness.Setting) {
		for _, f := range []harness.Form{harness.Forms[0], harness.Forms[2]} {
			for _, query := range []string{"UPDATE books SET price = 30", "DELETE FROM books", "UPDATE books SET price = 30 RETURNING id"} {
				t.Run(f.Name+"/"+query, func(t *testing.T) {
					sh := askedShop(t, s)
					sh.Reset(t, 8)
					sh.Exec(t, "UPDATE books SET serial = 7")
					first := sh.Block(t, harness.Write{})
					if _, err := first.Tx.Exec("UPDATE books SET price = 5 WHERE id = 1"); err != nil {
						t.Fatal(err)
					}
					second := blockSecond(t, sh)
					done, result := start(sqlfence.WithSerial(harness.Holding(t, 8), 7), sh, f, harness.Write{Query: query})
					sh.WantBlocked(t, first.PID, done)
					if err := first.Tx.Commit(); err != nil {
						t.Fatal(err)
					}
					if s.Level == sql.LevelReadCommitted {
						sh.WantBlocked(t, second.PID, done)
					}
					ctx, cancel := context.WithTimeout(t.Context(), harness.Patience)
					defer cancel()
					if token, err := sh.Issue(ctx); token != 9 || err != nil {
						t.Errorf("issue: %d, %v", token, err)
					}
					if err := second.Tx.Rollback(); err != nil {
						t.Fatal(err)
					}
					<-done
					if err := *result; s.Level == sql.LevelReadCommitted || !harness.RefusedByIsolation(err) {
						harness.WantStale(t, err, 8, 9)
					}
				})
			}
		}
	})
}

// blockSecond is Block for row 2.
func blockSecond(t *testing.T, s *harness.Shop) *harness.Blocker {
	t.Helper()
	tx, err := s.Plain.Begin()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() }) // if the test fails before
	b := &harness.Blocker{Tx: tx}
	if _, err := tx.Exec("SELECT id FROM books WHERE id = 2 FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	if err := tx.QueryRow("SELECT pg_backend_pid()").Scan(&b.PID); err != nil {
		t.Fatal(err)
	}
	return b
}

// In every kind of statement a stale token is reported before any other refusal, and no stale write lands.
func TestLedgerIsAskedInEveryKindOfStatement(t *testing.T) {
	harness.EachPostgres(t, func(t *testing.T, s harness.Setting) {
		for name, rules := range askedRules {
			sh := askedShop(t, s, rules...)
			for _, tt := range []struct {
				query     string
				versioned bool
			}{
				{"UPDATE books SET price = 30 WHERE id = 1", true},
				{"UPDATE books SET price = 30 RETURNING id", true},
				{"DELETE FROM books WHERE id = 1", true},
				{"INSERT INTO books (id, isbn) VALUES (1, 'i1') ON CONFLICT (id) DO UPDATE SET price = 30", true},
				{"INSERT INTO books (id, isbn) VALUES (7, 'i7') ON CONFLICT (id) DO UPDATE SET price = 30", true},
				{"UPDATE books SET serial = 3 WHERE id = 1", false},
				{"UPDATE books SET price = 30 WHERE id = 1", false},
				{"INSERT INTO books (id, isbn) VALUES (7, 'i7')", false},
				{"MERGE INTO books b USING (SELECT 1 AS id) s ON b.id = s.id WHEN MATCHED THEN UPDATE SET price = 30", false},
				{"MERGE INTO books b USING (SELECT 1 AS id) s ON b.id = s.id WHEN MATCHED THEN UPDATE SET serial = 3", false},
				{"MERGE INTO books b USING (SELECT 1 AS id) s ON b.id = s.id WHEN MATCHED AND b.price > 0 THEN DELETE", false},
				{"WITH u AS (UPDATE books SET price = 30 RETURNING id) SELECT id FROM u", false},
				{"WITH n AS (SELECT 1 AS id) UPDATE books SET serial = 3 FROM n WHERE books.id = n.id", false},
				{"EXPLAIN ANALYZE UPDATE books SET serial = 3 WHERE id = 1", false},
				{"EXPLAIN (ANALYZE) DELETE FROM books", false},
			} {
				t.Run(name+"/"+tt.query, func(t *testing.T) {
					if harness.Lacks(t, sh.Plain, tt.query) {
						t.Skip("the server has no MERGE")
					}
					for _, held := range []string{"editedby = NULL", "editedby = 42, editedexpiry = 'infinity'"} {
						sh.Reset(t, 8)
						sh.Exec(t, "UPDATE books SET serial = 7, "+held)
						unchanged := sh.Unchanged(t)
						sh.Raise(t, "books", 9)
						ctx := harness.Holding(t, 8)
						if tt.versioned {
							ctx = sqlfence.WithSerial(ctx, 6)
						}
						for _, f := range []harness.Form{harness.Forms[0], harness.Forms[2]} {
							_, err := f.Run(ctx, sh.DB, harness.Write{Query: tt.query})
							harness.WantStale(t, err, 8, 9)
							if errors.Is(err, sqlfence.ErrConflict) || errors.Is(err, sqlfence.ErrLocked) {
								t.Errorf("it is more than stale: %v", err)
							}
						}
						sh.Raise(t, "books", 8)
						unchanged()
						// With the newest token only other rules may refuse the statement.
						if _, err := harness.Forms[0].Run(ctx, sh.DB, harness.Write{Query: tt.query}); errors.Is(err, sqlfence.ErrStale) || errors.Is(err, sqlfence.ErrUnguardable) {
							t.Errorf("with the newest token: %v", err)
						}
					}
				})
			}
		}
	})
}
