package errors_test

import (
	"database/sql"
	"errors"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// After an SQL string has ended a transaction, the outcome of the transaction's guarded writes is known. Some drivers
// then send nothing for Tx.Commit, so Tx.Commit returns the driver's error, if any, and not ErrUnknownOutcome.
func TestCommitOfATransactionThatATextHasEnded(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		s := harness.NewShop(t, b, sqlfence.RowFence("fence_token"))
		for end, landed := range map[string]bool{
			"COMMIT": true, "ROLLBACK": false, "/* a */ commit": true, "ROLLBACK; BEGIN; ROLLBACK": false,
		} {
			for _, prepared := range []bool{false, true} {
				s.Reset(t, 9)
				ctx := harness.Holding(t, 9)
				tx, err := s.DB.BeginTx(ctx, nil)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := tx.ExecContext(ctx, "UPDATE books SET price = 30 WHERE id = 1"); err != nil {
					t.Fatal(err)
				}
				if prepared {
					var stmt *sql.Stmt
					if stmt, err = tx.PrepareContext(ctx, end); err == nil {
						_, err = stmt.ExecContext(ctx)
						_ = stmt.Close()
					}
				} else {
					_, err = tx.ExecContext(ctx, end)
				}
				if err != nil { // the driver sends no such text
					_ = tx.Rollback()
					continue
				}
				if err := tx.Commit(); errors.Is(err, sqlfence.ErrUnknownOutcome) {
					t.Errorf("Commit behind %s: %v", end, err)
				}
				want := "1:10 2:10 3:10"
				if landed {
					want = "1:30 2:10 3:10"
				}
				if got := s.State(t, false); got != want {
					t.Errorf("%s left %s", end, got)
				}
			}
		}
	})
}
