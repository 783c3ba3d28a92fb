package mysql_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// Effects that programs see only on MySQL, as docs/mysql.md describes.

// A deadlock ends the transaction, and MySQL continues in autocommit. Without sqlfence, later statements of the same
// sql.Tx land separately. With sqlfence a write to a registered table is refused.
func TestAfterADeadlock(t *testing.T) {
	dsn := setup(t)
	plain := open(t, dsn)
	for fenced, want := range map[bool]int{false: 30, true: 10} {
		exec(t, plain, "REPLACE INTO books (id, price, fence_token) VALUES (1, 10, 5)")
		db := plain
		if fenced {
			db = fence(t, dsn, sqlfence.RowFence("fence_token"))
		}
		victim := deadlocked(t, db)
		for _, token := range []int64{4, 5, 6} {
			_, err := victim.ExecContext(holding(token), "UPDATE books SET price = 30 WHERE id = 1")
			if refused := isNumber(err, 1213) && temporary(err); refused != fenced || !fenced && err != nil {
				t.Errorf("fenced %t: %v", fenced, err)
			}
		}
		if fenced {
			if _, err := victim.ExecContext(t.Context(), "UPDATE books SET price = 20 WHERE id = 1"); !errors.Is(err, sqlfence.ErrNoFence) {
				t.Errorf("without a token: %v", err)
			}
		}
		if err := victim.Rollback(); err != nil {
			t.Fatal(err)
		}
		var price int
		if err := plain.QueryRow("SELECT price FROM books WHERE id = 1").Scan(&price); err != nil || price != want {
			t.Errorf("fenced %t: price %d, %v; want %d, whatever Rollback says", fenced, price, err, want)
		}
	}
}

// deadlocked returns a transaction that a deadlock has ended.
func deadlocked(t *testing.T, db *sql.DB) *sql.Tx {
	t.Helper()
	var txs [2]*sql.Tx
	for i := range txs {
		tx, err := db.BeginTx(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = tx.Rollback() })
		exec(t, tx, "UPDATE pens SET price = price + 1 WHERE id = ?", i+1)
		txs[i] = tx
	}
	type end struct {
		of  *sql.Tx
		err error
	}
	ends := make(chan end, len(txs))
	for i, tx := range txs {
		go func() {
			_, err := tx.ExecContext(context.Background(), "UPDATE pens SET price = price + 1 WHERE id = ?", 2-i)
			ends <- end{tx, err}
		}()
	}
	var victim *sql.Tx
	for range txs {
		if e := <-ends; e.err == nil {
			if err := e.of.Rollback(); err != nil {
				t.Fatal(err)
			}
		} else if victim = e.of; number(e.err) != 1213 {
			t.Fatal(e.err)
		}
	}
	return victim
}

// By default the driver reports the rows that an UPDATE has changed. A new stored token is a change of the row, even if
// the program's columns stay the same. ON UPDATE CURRENT_TIMESTAMP has the same effect.
func TestUnchangedRows(t *testing.T) {
	dsn := setup(t)
	plain := open(t, dsn)
	exec(t, plain, "ALTER TABLE books ADD COLUMN at timestamp NOT NULL DEFAULT '2001-01-01' ON UPDATE CURRENT_TIMESTAMP")
	for _, c := range []struct {
		name  string
		rules []sqlfence.Rule
		found bool
		token int64
		rows  int64
		moved bool
	}{
		{"row fence, newer token", []sqlfence.Rule{sqlfence.RowFence("fence_token")}, false, 6, 1, true},
		{"row fence, the row's token", []sqlfence.Rule{sqlfence.RowFence("fence_token")}, false, 5, 0, false},
		{"row fence, the row's token, found rows", []sqlfence.Rule{sqlfence.RowFence("fence_token")}, true, 5, 1, false},
		{"ledger", []sqlfence.Rule{sqlfence.Ledger()}, false, 6, 0, false},
		{"ledger, found rows", []sqlfence.Rule{sqlfence.Ledger()}, true, 6, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			exec(t, plain, "REPLACE INTO books (id, price, fence_token, at) VALUES (1, 10, 5, '2001-01-01')")
			exec(t, plain, "REPLACE INTO fencing_tokens (name, token) VALUES ('books', 6)")
			db := fence(t, harness.MySQLWith(t, dsn, func(cfg *mysql.Config) { cfg.ClientFoundRows = c.found }), c.rules...)
			n, err := harness.Affected(db.ExecContext(holding(c.token), "UPDATE books SET price = 10 WHERE id = 1"))
			if err != nil || n != c.rows {
				t.Errorf("%d rows, %v; want %d", n, err, c.rows)
			}
			var moved bool
			if err := plain.QueryRow("SELECT at > '2001-01-02' FROM books WHERE id = 1").Scan(&moved); err != nil || moved != c.moved {
				t.Errorf("the time has moved: %t, %v", moved, err)
			}
		})
	}
}
