package drivers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
)

// A conflict of serials, a lock and a row that is gone are told only after the ledger
// was asked, which a statement does once: also where it waited for the row.

// askedShop is a shop whose books have all rules that ask the ledger before they raise.
func (s setting) askedShop(t *testing.T, rules ...sqlfence.Rule) *shop {
	return s.lockShop(t, "integer", append(rules, sqlfence.Ledger(), sqlfence.Serial("serial"))...)
}

// start sends a write in a goroutine; the channel is closed when it has answered.
func (s *shop) start(ctx context.Context, f form, w write) (<-chan struct{}, *error) {
	done, result := make(chan struct{}), new(error)
	go func() {
		defer close(done)
		_, *result = f.run(ctx, s.db, w)
	}()
	return done, result
}

var askedRules = map[string][]sqlfence.Rule{"ledger": nil, "both": {sqlfence.RowFence("fence_token")}}

func TestLedgerIsAskedFirst(t *testing.T) {
	eachPostgres(t, func(t *testing.T, s setting) {
		for name, rules := range askedRules {
			sh := s.askedShop(t, rules...)
			for _, w := range rowWrites {
				for _, change := range []string{"serial = 8", "editedby = 42, editedexpiry = 'infinity'", "serial = 8, editedby = 42, editedexpiry = 'infinity'", "price = 5"} {
					for _, issues := range []bool{false, true} {
						t.Run(fmt.Sprint(name, "/", w.name, "/", change, "/", issues), func(t *testing.T) {
							sh.reset(t, 8)
							sh.exec(t, "UPDATE books SET serial = 7")
							b := sh.block(t, write{})
							if _, err := b.tx.Exec("UPDATE books SET " + change + " WHERE id = 1"); err != nil {
								t.Fatal(err)
							}
							done, result := sh.start(sqlfence.WithSerial(holding(t, 8), 7), forms[0], w)
							sh.wantBlocked(t, b.pid, done)
							if issues {
								if token, err := sh.issue(t.Context()); token != 9 || err != nil {
									t.Fatalf("issue: %d, %v", token, err)
								}
							}
							if err := b.tx.Commit(); err != nil {
								t.Fatal(err)
							}
							<-done
							switch err := *result; {
							case s.level != sql.LevelReadCommitted && refusedByIsolation(err):
							case issues:
								wantStale(t, err, 8, 9)
							case strings.HasPrefix(change, "serial"):
								wantConflict(t, err, 7, 8)
							case strings.HasPrefix(change, "editedby"):
								wantError(t, err, sqlfence.ErrLocked)
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

// A write that goes on to wait for another row, after one that had changed, holds off
// no token: the ledger's turn is taken when all rows are locked.
func TestLedgerIsAskedLast(t *testing.T) {
	eachPostgres(t, func(t *testing.T, s setting) {
		for _, f := range []form{forms[0], forms[2]} {
			for _, query := range []string{"UPDATE books SET price = 30", "DELETE FROM books", "UPDATE books SET price = 30 RETURNING id"} {
				t.Run(f.name+"/"+query, func(t *testing.T) {
					sh := s.askedShop(t)
					sh.reset(t, 8)
					sh.exec(t, "UPDATE books SET serial = 7")
					first := sh.block(t, write{})
					if _, err := first.tx.Exec("UPDATE books SET price = 5 WHERE id = 1"); err != nil {
						t.Fatal(err)
					}
					second := sh.block2(t)
					done, result := sh.start(sqlfence.WithSerial(holding(t, 8), 7), f, write{query: query})
					sh.wantBlocked(t, first.pid, done)
					if err := first.tx.Commit(); err != nil {
						t.Fatal(err)
					}
					if s.level == sql.LevelReadCommitted {
						sh.wantBlocked(t, second.pid, done)
					}
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
					defer cancel()
					if token, err := sh.issue(ctx); token != 9 || err != nil {
						t.Errorf("issue: %d, %v", token, err)
					}
					if err := second.tx.Rollback(); err != nil {
						t.Fatal(err)
					}
					<-done
					if err := *result; s.level == sql.LevelReadCommitted || !refusedByIsolation(err) {
						wantStale(t, err, 8, 9)
					}
				})
			}
		}
	})
}

// block2 is block for the row 2.
func (s *shop) block2(t *testing.T) *blocker {
	t.Helper()
	tx, err := s.plain.Begin()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() }) // for a test that fails early
	b := &blocker{tx: tx}
	if _, err := tx.Exec("SELECT id FROM books WHERE id = 2 FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	if err := tx.QueryRow("SELECT pg_backend_pid()").Scan(&b.pid); err != nil {
		t.Fatal(err)
	}
	return b
}

// In all kinds of statement a stale token is told first, and none of them lands.
func TestLedgerIsAskedInEveryKindOfStatement(t *testing.T) {
	eachPostgres(t, func(t *testing.T, s setting) {
		for name, rules := range askedRules {
			sh := s.askedShop(t, rules...)
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
					for _, held := range []string{"editedby = NULL", "editedby = 42, editedexpiry = 'infinity'"} {
						sh.reset(t, 8)
						sh.exec(t, "UPDATE books SET serial = 7, "+held)
						unchanged := sh.unchanged(t)
						sh.raise(t, "books", 9)
						ctx := holding(t, 8)
						if tt.versioned {
							ctx = sqlfence.WithSerial(ctx, 6)
						}
						for _, f := range []form{forms[0], forms[2]} {
							_, err := f.run(ctx, sh.db, write{query: tt.query})
							wantStale(t, err, 8, 9)
							if errors.Is(err, sqlfence.ErrConflict) || errors.Is(err, sqlfence.ErrLocked) {
								t.Errorf("it is more than stale: %v", err)
							}
						}
						sh.raise(t, "books", 8)
						unchanged()
						// The same with the newest token: what is refused is refused by another rule.
						if _, err := forms[0].run(ctx, sh.db, write{query: tt.query}); errors.Is(err, sqlfence.ErrStale) || errors.Is(err, sqlfence.ErrUnguardable) {
							t.Errorf("with the newest token: %v", err)
						}
					}
				})
			}
		}
	})
}
