package tokens_test

import (
	"errors"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// A lease that is taken while Rotate waits for a table is a live lease.
func TestRotateSeesALeaseThatIsTakenWhileItWaits(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if !b.Networked() {
			t.Skip("there is one writer")
		}
		s := harness.NewShop(t, b, sqlfence.RowFence("fence_token"), sqlfence.Ledger())
		s.Reset(t, 9)
		leases, store := harness.NewLeases(t, s.DB), harness.NewStore(t, s.DB)
		tx := harness.Begin(t.Context(), t, s.Plain, 0)
		if _, err := tx.Exec("UPDATE books SET price = price + 1 WHERE id = 1"); err != nil {
			t.Fatal(err)
		}
		rotating := harness.Go(func() error {
			_, err := store.Rotate(t.Context(), "books", tokens.Mark{Table: "books", Column: "fence_token"})
			return err
		})
		harness.Eventually(t, "Rotate waits", func() bool { return b.Waiting(t, s.Plain) > 0 })
		l := harness.MustAcquire(t, leases, "books")
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		var refused *tokens.RetireError
		if err := rotating.Wait(); !errors.As(err, &refused) {
			t.Errorf("Rotate: %v, want a refusal", err)
		}
		if _, err := s.DB.ExecContext(l.Context(), "UPDATE books SET price = 30 WHERE id = 2"); err != nil {
			t.Errorf("the holder's write: %v", err)
		}
	})
}
