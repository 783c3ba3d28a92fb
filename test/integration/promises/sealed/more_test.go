package sealed_test

import (
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/schema"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A write that has waited for a row is compared with the row's current stored token, at every level.
func TestWaitingWriters(t *testing.T) {
	for _, b := range harness.Chosen(bases[:3]) {
		for _, level := range []sql.IsolationLevel{sql.LevelDefault, sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable} {
			for _, late := range []string{
				"UPDATE books SET price = 99, fence_token = -8 WHERE id = 1",
				"DELETE FROM books WHERE id = 1 AND " + strings.NewReplacer("{table}", "books", "{token}", "8").Replace(proofs[b.Dialect]),
			} {
				l := newLab(t, b)
				first, err := l.plain.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := first.Exec("UPDATE books SET price = 20, fence_token = -9 WHERE id = 1"); err != nil {
					t.Fatal(err)
				}
				second, err := l.plain.BeginTx(t.Context(), &sql.TxOptions{Isolation: level})
				if err != nil {
					t.Fatal(err)
				}
				var n int
				if err := second.QueryRow("SELECT COUNT(*) FROM authors").Scan(&n); err != nil { // takes its snapshot
					t.Fatal(err)
				}
				answer := make(chan error, 1)
				go func() {
					_, err := second.Exec(late)
					answer <- err
				}()
				harness.Eventually(t, "a write that waits", func() bool {
					select {
					case err := <-answer:
						t.Fatalf("%v, %v: %s didn't wait: %v", b.Name, level, late, err)
					default:
					}
					return b.Waiting(t, l.plain) > 0
				})
				if err := first.Commit(); err != nil {
					t.Fatal(err)
				}
				if err := <-answer; err == nil || !strings.Contains(err.Error(), "sqlfence: stale token 8 for table books, which has 9") && !harness.RefusedByIsolation(err) && !strings.Contains(err.Error(), "Error 1020") { // at snapshot isolation
					t.Errorf("%v, %v: %s: %v", b.Name, level, late, err)
				}
				_ = second.Rollback()
				l.want(t, "1:20@9 2:10@7 3:10@0")
			}
		}
	}
}

// pgx presents the token in each of its query modes.
func TestPgxModes(t *testing.T) {
	for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
		l := newLab(t, bases[1], sqlfence.Ledger())
		db := l.Fenced(t, l.dsn+"&default_query_exec_mode="+mode, sqlfence.WithTable("books", l.rules...))
		for i, query := range []string{
			"UPDATE books SET price = $1 WHERE id = $2",
			"INSERT INTO books (price, id) VALUES ($1, $2 + 100)",
			"DELETE FROM books WHERE price = $1 AND id = $2",
		} {
			for _, value := range []int64{6, 7} {
				if _, err := db.ExecContext(holding(t, value), query, 20, 1); errors.Is(err, sqlfence.ErrStale) != (value == 6) || value == 7 && err != nil {
					t.Errorf("%s, %d with %d: %v", mode, i, value, err)
				}
			}
		}
		l.want(t, "2:10@7 3:10@0 101:20@7")
	}
}

// If a statement presents tokens of several rows, each row is compared with its own.
func TestKeys(t *testing.T) {
	eachBase(t, func(t *testing.T, b harness.Base) {
		for _, ledger := range []bool{false, true} {
			l := newUnsealed(t, b)
			rules := append([]sqlfence.Rule{sqlfence.Key("id")}, l.rules...)
			if ledger {
				rules = append(rules, sqlfence.Ledger())
			}
			l.exec(t, "INSERT INTO fencing_tokens (name, token) VALUES ('books/1', 8), ('books/2', 9), ('books/3', 5)")
			db := l.Fenced(t, l.dsn, sqlfence.WithTable("books", rules...))
			if err := schema.Seal(t.Context(), db); err != nil {
				t.Fatal(err)
			}
			ctx := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books/1", Value: 8}, sqlfence.Token{Name: "books/2", Value: 9}, sqlfence.Token{Name: "books/3", Value: 5})
			for _, query := range []string{"UPDATE books SET price = 20", "DELETE FROM books WHERE id > 1", "INSERT INTO books (id, price) VALUES (2, 1), (3, 2)"} {
				if _, err := db.ExecContext(ctx, query); err != nil {
					t.Errorf("%s: %v", query, err)
				}
			}
			l.want(t, "1:20@8 2:1@9 3:2@5")
			_, err := db.ExecContext(sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books/1", Value: 8}), "DELETE FROM books")
			harness.WantError(t, err, sqlfence.ErrOutOfScope)
			l.want(t, "1:20@8 2:1@9 3:2@5")
		}
	})
}
