package mysql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence"
)

func isNumber(err error, numbers ...uint16) bool {
	var answer *mysql.MySQLError
	for _, n := range numbers {
		if errors.As(err, &answer) && answer.Number == n {
			return true
		}
	}
	return false
}

// deadlock makes the server choose tx, which changes one row, as the victim: a second transaction changes more rows,
// and both then want the other transaction's lock. victim is the statement of tx that fails.
func deadlock(t *testing.T, plain *sql.DB, tx *sql.Tx, victim func() error) {
	t.Helper()
	other, err := plain.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Rollback()
	exec(t, tx, "UPDATE pens SET price = price + 1 WHERE id = 1")
	exec(t, other, "UPDATE ballast SET n = n + 1")
	exec(t, other, "UPDATE books SET touched = 1 WHERE id = 1")
	exec(t, other, "UPDATE pens SET grp = 7 WHERE id = 2")
	failed := make(chan error)
	go func() { failed <- victim() }()
	_, err = other.Exec("UPDATE pens SET grp = 7 WHERE id = 1") // the statements may come in either order
	if first := <-failed; !isNumber(first, 1213) || err != nil {
		t.Fatalf("the statement: %v, the other transaction: %v; want 1213 and nil", first, err)
	}
}

// After a deadlock the server has rolled the whole transaction back and continues in autocommit. No guarded write of
// the transaction may land separately, whichever statement was the victim.
func TestWriteAfterDeadlock(t *testing.T) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			dsn := setup(t)
			plain := open(t, dsn)
			exec(t, plain, "CREATE TABLE ballast (n int) ENGINE=InnoDB")
			exec(t, plain, "INSERT INTO ballast VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9)")
			db := fence(t, m.with(t, dsn), sqlfence.RowFence("fence_token"))
			ctx := holding(5)
			for name, victim := range map[string]func(tx *sql.Tx) error{
				"guarded":           func(tx *sql.Tx) error { return execIn(ctx, tx, "UPDATE books SET price = 7 WHERE id = 1") },
				"guarded, argument": func(tx *sql.Tx) error { return execIn(ctx, tx, "UPDATE books SET price = ? WHERE id = 1", 7) },
				"other":             func(tx *sql.Tx) error { return execIn(ctx, tx, "UPDATE pens SET price = 7 WHERE id = 2") },
				"other, argument":   func(tx *sql.Tx) error { return execIn(ctx, tx, "UPDATE pens SET price = ? WHERE id = 2", 7) },
				"other, behind the query": func(tx *sql.Tx) error {
					rows, err := tx.Query("SELECT price FROM pens WHERE id BETWEEN 1 AND 2 ORDER BY id DESC FOR UPDATE")
					if err != nil {
						return err
					}
					defer rows.Close()
					for rows.Next() {
						continue
					}
					return rows.Err()
				},
				"other, prepared": func(tx *sql.Tx) error {
					stmt, err := tx.Prepare("UPDATE pens SET price = ? WHERE id = 2")
					if err != nil {
						return err
					}
					defer stmt.Close()
					_, err = stmt.Exec(7)
					return err
				},
			} {
				t.Run(name, func(t *testing.T) {
					exec(t, plain, "REPLACE INTO books (id, price) VALUES (1, 1), (2, 1)")
					tx, err := db.Begin()
					if err != nil {
						t.Fatal(err)
					}
					defer tx.Rollback()
					exec(t, holder{tx, ctx}, "UPDATE books SET price = 8 WHERE id = 2")
					deadlock(t, plain, tx, func() error { return victim(tx) })
					for _, args := range [][]any{nil, {8}} {
						query := "UPDATE books SET price = 8 WHERE id = 1"
						if args != nil {
							query = strings.Replace(query, "8", "?", 1)
						}
						if err := execIn(ctx, tx, query, args...); !isNumber(err, 1213) || !temporary(err) {
							t.Errorf("a write after the deadlock: %v", err)
						}
					}
					if err := tx.Commit(); !isNumber(err, 1213) || !temporary(err) {
						t.Errorf("the commit: %v", err)
					}
					var prices string
					if err := plain.QueryRow("SELECT GROUP_CONCAT(price ORDER BY id) FROM books").Scan(&prices); err != nil || prices != "1,1" {
						t.Errorf("prices %s, %v; want 1,1", prices, err)
					}
				})
			}
		})
	}
}

// execIn executes a statement in a transaction.
func execIn(ctx context.Context, tx *sql.Tx, query string, args ...any) error {
	_, err := tx.ExecContext(ctx, query, args...)
	return err
}

// A holder executes statements with the tokens of a context.
type holder struct {
	executor
	ctx context.Context
}

func (h holder) ExecContext(_ context.Context, query string, args ...any) (sql.Result, error) {
	return h.executor.ExecContext(h.ctx, query, args...)
}

func temporary(err error) bool {
	var t interface{ Temporary() bool }
	return errors.As(err, &t) && t.Temporary()
}

// Retry runs a transaction again that waited too long for a lock, or was rolled back because of another
// one, and nothing of the first run stays.
func TestRetryOnMySQL(t *testing.T) {
	dsn := setup(t)
	plain := open(t, dsn)
	exec(t, plain, "CREATE TABLE ballast (n int) ENGINE=InnoDB")
	exec(t, plain, "INSERT INTO ballast VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9)")
	snapshots := execAlone(t, plain, "SET innodb_snapshot_isolation = 1") == nil
	for _, rule := range []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Ledger()} {
		for number, first := range map[uint16]func(t *testing.T, ctx context.Context, tx *sql.Tx) error{
			1213: func(t *testing.T, ctx context.Context, tx *sql.Tx) (failed error) {
				deadlock(t, plain, tx, func() error {
					failed = execIn(ctx, tx, "UPDATE books SET price = price + 1 WHERE id = 1")
					return failed
				})
				return failed
			},
			1205: func(t *testing.T, ctx context.Context, tx *sql.Tx) error {
				other, err := plain.Begin()
				if err != nil {
					t.Fatal(err)
				}
				defer other.Rollback()
				exec(t, other, "UPDATE books SET touched = 1 WHERE id = 1")
				exec(t, tx, "SET innodb_lock_wait_timeout = 1")
				return execIn(ctx, tx, "UPDATE books SET price = price + 1 WHERE id = 1")
			},
			1020: func(t *testing.T, ctx context.Context, tx *sql.Tx) error {
				exec(t, tx, "SET innodb_snapshot_isolation = 1")
				var n int
				if err := tx.QueryRow("SELECT COUNT(*) FROM pens").Scan(&n); err != nil {
					t.Fatal(err)
				}
				exec(t, plain, "UPDATE books SET touched = 1 - touched WHERE id = 1")
				return execIn(ctx, tx, "UPDATE books SET price = price + 1 WHERE id = 1")
			},
		} {
			if number == 1020 && !snapshots {
				continue
			}
			for _, ignored := range []bool{false, true} {
				if ignored && number == 1205 { // this error doesn't end the transaction
					continue
				}
				t.Run(fmt.Sprint(number, " ignored ", ignored), func(t *testing.T) {
					exec(t, plain, "DELETE FROM fencing_tokens")
					exec(t, plain, "INSERT INTO fencing_tokens VALUES ('books', 5)")
					exec(t, plain, "REPLACE INTO books (id, price) VALUES (1, 1), (2, 1)")
					db := fence(t, dsn, rule)
					runs := 0
					err := sqlfence.Retry(holding(5), db, sqlfence.RetryOptions{Tx: &sql.TxOptions{Isolation: sql.LevelRepeatableRead}}, func(ctx context.Context, tx *sql.Tx) error {
						if runs++; runs > 1 {
							exec(t, holder{tx, ctx}, "UPDATE books SET price = price + 10 WHERE id = 2")
							return execIn(ctx, tx, "UPDATE books SET price = price + 1 WHERE id = 1")
						}
						if number != 1020 { // a write here would set the snapshot
							exec(t, holder{tx, ctx}, "UPDATE books SET price = price + 10 WHERE id = 2")
						}
						err := first(t, ctx, tx)
						if !isNumber(err, number) {
							t.Fatalf("%v, want %d", err, number)
						}
						if ignored {
							return nil
						}
						return err
					})
					if err != nil || runs != 2 {
						t.Errorf("%d runs, %v; want 2", runs, err)
					}
					var prices string
					if err := plain.QueryRow("SELECT GROUP_CONCAT(price ORDER BY id) FROM books").Scan(&prices); err != nil || prices != "2,11" {
						t.Errorf("prices %s, %v; want 2,11", prices, err)
					}
				})
			}
		}
	}
}

// execAlone executes a statement on a connection that isn't used again.
func execAlone(t *testing.T, db *sql.DB, query string) error {
	t.Helper()
	conn, err := db.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = conn.ExecContext(context.Background(), query)
	_ = conn.Raw(func(any) error { return sql.ErrConnDone })
	return err
}
