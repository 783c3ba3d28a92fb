//go:build linux

package pgbouncer_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// In statement mode a pooler accepts only single statements outside transactions. Guarded statements, tokens and leases
// work. An operation that needs a transaction fails with the pooler's error and changes nothing.
func TestStatementMode(t *testing.T) {
	harness.NeedPostgres(t)
	for _, p := range poolings() {
		if !p.shared {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			rules := []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Ledger()}
			s := harness.NewShop(t, baseNamed(p.base), rules...)
			s.Reset(t, 0)
			db := s.Fenced(t, behindPgbouncerIn(t, s.Source, "statement", pgbouncerConns)+p.params, harness.Books(rules...))
			store, leases := harness.NewStore(t, db), harness.NewLeases(t, db)
			var issued [2]sqlfence.Token
			for i := range issued {
				token, err := store.Issue(t.Context(), "books")
				if err != nil {
					t.Fatal(err)
				}
				issued[i] = token
			}
			const update = "UPDATE books SET price = 77 WHERE id = 1"
			if _, err := db.ExecContext(sqlfence.WithFence(t.Context(), issued[1]), update); err != nil {
				t.Error(err)
			}
			_, err := db.ExecContext(sqlfence.WithFence(t.Context(), issued[0]), update)
			harness.WantStale(t, err, issued[0].Value, issued[1].Value)
			if current, err := store.Current(t.Context(), "books"); err != nil || current != issued[1] {
				t.Errorf("Current: %v, %v", current, err)
			}
			l := harness.MustAcquire(t, leases, "jobs")
			harness.MustRelease(t, l)

			tx, txErr := db.Begin()
			if txErr == nil {
				_, txErr = tx.ExecContext(sqlfence.WithFence(t.Context(), issued[1]), update)
				txErr = errors.Join(txErr, tx.Commit())
			}
			refusal := "statement pooling mode"
			if p.base == "pq" { // lib/pq drops the pooler's message
				refusal = "bad connection"
			}
			_, repairErr := store.Repair(t.Context(), 1000)
			for what, err := range map[string]error{"Begin": txErr, "Repair": repairErr} {
				if err == nil || !strings.Contains(err.Error(), refusal) {
					t.Errorf("%s: %v, want the pooler's refusal", what, err)
				}
			}
			if next, err := store.Issue(t.Context(), "books"); err != nil || next.Value != issued[1].Value+1 {
				t.Errorf("behind the failed Repair: %v, %v", next, err)
			}
		})
	}
}
