package errors_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// No transaction begins in an open one of the same connection. MySQL would commit the first transaction's writes, and
// the rollback of the first transaction would end the second one: its next writes would commit one by one.
func TestNoTransactionBeginsInAnOpenOne(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		s := harness.NewShop(t, b, sqlfence.RowFence("fence_token"))
		s.Reset(t, 9)
		for _, ends := range []bool{false, true} { // the first transaction's context, on which database/sql rolls back
			for range 20 {
				conn, err := s.DB.Conn(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(harness.Holding(t, 9))
				tx, err := conn.BeginTx(ctx, nil)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := tx.ExecContext(ctx, "UPDATE books SET price = 30 WHERE id = 1"); err != nil {
					t.Fatal(err)
				}
				if ends {
					cancel()
					// database/sql may have rolled the transaction back already.
					if err := tx.Commit(); !errors.Is(err, context.Canceled) && !errors.Is(err, sql.ErrTxDone) {
						t.Errorf("commit: %v", err)
					}
				}
				second, err := beginsSoon(t, conn, ends)
				switch {
				case err == nil:
					_ = second.Rollback()
				case ends && !errors.Is(err, sql.ErrConnDone) && !errors.Is(err, driver.ErrBadConn):
					t.Error(err) // else database/sql has ended the transaction with its connection
				}
				if err == nil && !ends {
					t.Error("a second transaction has begun")
				}
				cancel()
				_ = tx.Rollback()
				_ = conn.Close()
				if got, want := s.State(t, false), "1:10 2:10 3:10"; got != want {
					t.Fatalf("left %s by transactions that were rolled back", got)
				}
			}
		}
	})
}

// beginsSoon begins a transaction, again after a temporary error if it waits.
func beginsSoon(t *testing.T, conn *sql.Conn, waits bool) (*sql.Tx, error) {
	for {
		tx, err := conn.BeginTx(t.Context(), nil)
		if temporary := interface{ Temporary() bool }(nil); !waits || !errors.As(err, &temporary) || !temporary.Temporary() {
			return tx, err
		}
	}
}
