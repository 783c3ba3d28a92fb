package mysql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

var levels = []sql.IsolationLevel{sql.LevelReadUncommitted, sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable}

// waits returns once any transaction of the server waits for a lock, or the write has ended. If the waiting transaction
// is another program's, the test's write comes after the newer write, and doesn't wait.
func waits(t testing.TB, db *sql.DB, done chan error) {
	t.Helper()
	harness.Eventually(t, "somebody waits", func() bool {
		var name string
		var n int
		if err := db.QueryRow("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'").Scan(&name, &n); err != nil {
			t.Fatal(err)
		}
		return n > 0 || len(done) > 0
	})
}

// refusedAfterWaiting reports whether a stale write that waited may end with the error: it is the guard's, or one by
// which the server ends the transaction.
func refusedAfterWaiting(err error) bool {
	n := number(err)
	return errors.Is(err, sqlfence.ErrStale) || n == 1020 || n == 1213
}

// A stale write waits until a newer write is committed. It is refused, at each isolation level, even if its transaction
// has read an older version of the row or of the ledger.
func TestStaleWriteThatWaits(t *testing.T) {
	writes := map[string]string{
		"update": "UPDATE books SET price = 666 WHERE id = 1",
		"delete": "DELETE FROM books WHERE id = 1",
		"null":   "DELETE FROM books WHERE isbn IS NULL AND id = 1",
		"upsert": "INSERT INTO books (id, price) VALUES (1, 666) ON DUPLICATE KEY UPDATE price = VALUES(price)",
		"all":    "UPDATE books SET price = 666 WHERE price >= 0",
		"joined": "UPDATE books b JOIN pens p ON p.id >= b.id SET b.price = 666 WHERE b.id = 1",
		"others": "UPDATE pens p STRAIGHT_JOIN books b ON b.id <= p.id SET p.grp = p.grp + 1, b.price = 666",
		"using":  "DELETE FROM b USING pens p STRAIGHT_JOIN books b ON b.id <= p.id WHERE p.id > 0",
		"from":   "DELETE b FROM books b JOIN pens p ON p.id = b.id WHERE b.id = 1",
		"query":  "INSERT INTO books (id, price) SELECT id + 70, 666 FROM pens",                        // likewise
		"sum":    "INSERT INTO books (id, price) SELECT 77, 666 + COUNT(*) FROM pens WHERE 1 = 0",      // likewise
		"groups": "INSERT INTO books (id, price) SELECT 77, 666 + MAX(id) * 0 FROM pens GROUP BY NULL", // likewise
		"union":  "INSERT INTO books (id, price) (SELECT 77, 666 UNION SELECT id + 77, 666 FROM pens)", // likewise
		"call":   "INSERT INTO books (price, title) VALUES (LENGTH('x') + 665, UUID())",                // likewise
		"insert": "INSERT INTO books (id, price) VALUES (77, 666)",                                     // refused by the ledger
	}
	dsn := setup(t)
	for _, level := range levels {
		for _, rule := range []string{"row", "ledger"} {
			for name, write := range writes {
				if rule == "row" && strings.HasPrefix(write, "INSERT") && name != "upsert" {
					continue
				}
				for _, m := range modes[:2] {
					t.Run(fmt.Sprint(level, "/", rule, "/", name, "/", m.name), func(t *testing.T) {
						staleWriteWaits(t, m.with(t, dsn), level, rule, write)
					})
				}
			}
		}
	}
}

// staleWriteWaits has a stale write wait for a newer one, and be refused.
func staleWriteWaits(t *testing.T, dsn string, level sql.IsolationLevel, rule, write string) {
	t.Helper()
	guard := sqlfence.RowFence("fence_token")
	if rule == "ledger" {
		guard = sqlfence.Ledger()
	}
	plain, db := open(t, dsn), fence(t, dsn, guard)
	exec(t, plain, "DELETE FROM books")
	exec(t, plain, "DELETE FROM fencing_tokens")
	exec(t, plain, "INSERT INTO books (id, price, fence_token) VALUES (1, 1, 5), (2, 2, 5)")
	exec(t, plain, "INSERT INTO fencing_tokens VALUES ('books', 5)")
	ctx := context.Background()

	newer, err := plain.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer newer.Rollback()
	older, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: level})
	if err != nil {
		t.Fatal(err)
	}
	defer older.Rollback()
	var price int // takes the transaction's snapshot
	if err := older.QueryRow("SELECT MAX(price) + (SELECT MAX(token) FROM fencing_tokens) * 0 FROM books").Scan(&price); err != nil {
		t.Fatal(err)
	}
	if level == sql.LevelSerializable { // the snapshot's locks would hold off the newer one
		if err := older.Rollback(); err != nil {
			t.Fatal(err)
		}
		if older, err = db.BeginTx(ctx, &sql.TxOptions{Isolation: level}); err != nil {
			t.Fatal(err)
		}
	}
	if rule == "ledger" {
		exec(t, newer, "UPDATE fencing_tokens SET token = 6 WHERE name = 'books'")
	} else {
		exec(t, newer, "UPDATE books SET price = 6, fence_token = 6 WHERE id = 1")
	}
	done := make(chan error, 1)
	go func() {
		_, err := older.ExecContext(holding(5), write)
		if err == nil {
			err = older.Commit()
		}
		done <- err
	}()
	waits(t, plain, done)
	if err := newer.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !refusedAfterWaiting(err) {
		t.Errorf("error = %v", err)
	}
	_ = older.Rollback()
	var landed int
	if err := plain.QueryRow("SELECT COUNT(*) FROM books WHERE price = 666").Scan(&landed); err != nil || landed != 0 {
		t.Errorf("%d rows, %v: THE STALE WRITE LANDED", landed, err)
	}
	if err := plain.QueryRow("SELECT COUNT(*) FROM books").Scan(&landed); err != nil || landed != 2 {
		t.Errorf("%d rows, %v: THE STALE WRITE LANDED", landed, err)
	}
}

// A write under the ledger's guard holds off the next token until its transaction ends.
func TestNextTokenWaitsForTheWrite(t *testing.T) {
	for _, level := range levels {
		t.Run(level.String(), func(t *testing.T) {
			dsn := setup(t)
			plain, db := open(t, dsn), fence(t, dsn, sqlfence.Ledger())
			exec(t, plain, "INSERT INTO books (id, price) VALUES (1, 1)")
			store, err := tokens.New(db)
			if err != nil {
				t.Fatal(err)
			}
			ctx := context.Background()
			token, err := store.Issue(ctx, "books")
			if err != nil {
				t.Fatal(err)
			}
			tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: level})
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback()
			exec(t, withContext{tx, sqlfence.WithFence(ctx, token)}, "UPDATE books SET price = 2 WHERE id = 1")
			issued := make(chan error, 1)
			var next sqlfence.Token
			go func() {
				var err error
				next, err = store.Issue(ctx, "books")
				issued <- err
			}()
			waits(t, plain, issued)
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
			if err := <-issued; err != nil || next.Value <= token.Value {
				t.Errorf("issued %v, %v", next, err)
			}
			if _, err := db.ExecContext(sqlfence.WithFence(ctx, token), "UPDATE books SET price = 3"); !errors.Is(err, sqlfence.ErrStale) {
				t.Errorf("error = %v, want ErrStale", err)
			}
		})
	}
}

// withContext executes statements under ctx instead of the given context.
type withContext struct {
	*sql.Tx
	ctx context.Context
}

func (w withContext) ExecContext(_ context.Context, query string, args ...any) (sql.Result, error) {
	return w.Tx.ExecContext(w.ctx, query, args...)
}
