package tokens_test

import (
	"errors"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// A lease that is acquired while Rotate waits for a table counts as live.
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

// If the session of an ephemeral lease has ended, the lease isn't live, even before the end of the TTL, and Rotate
// retires the name. While the session is open, Rotate doesn't retire the name.
func TestRotateRetiresTheNameOfADeadSessionsLease(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if !b.Networked() {
			t.Skip("leases have no sessions")
		}
		dsn := b.DSN(t)
		plain := b.Raw(t, dsn)
		store, direct := harness.NewStore(t, plain), harness.NewLeases(t, plain)
		holder := b.Raw(t, dsn)
		l := harness.MustAcquire(t, harness.NewLeases(t, holder), "books", lease.Ephemeral())
		var refused *tokens.RetireError
		if _, err := store.Rotate(t.Context(), "books"); !errors.As(err, &refused) {
			t.Fatalf("Rotate: %v, want a refusal", err)
		}
		if err := holder.Close(); err != nil {
			t.Fatal(err)
		}
		harness.Eventually(t, "the end of the session", func() bool {
			locked, err := direct.IsLocked(t.Context(), "books")
			return !locked && err == nil
		})
		retiring, err := store.Retires(t.Context(), "books")
		if err != nil || len(retiring) != 1 || retiring[0].Leased || retiring[0].Token != l.Token() {
			t.Errorf("Retires: %+v, %v", retiring, err)
		}
		if _, err := store.Rotate(t.Context(), "books"); err != nil {
			t.Errorf("Rotate: %v", err)
		}
	})
}
