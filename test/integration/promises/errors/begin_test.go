package errors_test

import (
	"context"
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
			if second, err := conn.BeginTx(t.Context(), nil); err == nil {
				t.Error("a second transaction has begun")
				_ = second.Rollback()
			}
			cancel()
			_ = tx.Rollback()
			_ = conn.Close()
			if got, want := s.State(t, false), "1:10 2:10 3:10"; got != want {
				t.Fatalf("left %s by transactions that were rolled back", got)
			}
		}
	})
}
