package concurrency_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A write that the ledger's guard has let through holds off the next token until its transaction ends. Otherwise the
// write could be committed after the next token was issued.
func TestG2LedgerHoldsOffTheNextTokenUntilCommit(t *testing.T) {
	harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
		if s.AsksLedgerFirst() {
			t.Skip("the next token waits in the server, where its client can't call it back: see test/integration/promises/mysql")
		}
		sh := s.Shop(t, sqlfence.Ledger())
		for _, w := range slices.Concat(harness.RowWrites, harness.FreshInserts) {
			for _, end := range []string{"commit", "rollback"} {
				sh.Reset(t, 8)
				before := sh.State(t, false)
				ctx := harness.Holding(t, 8)
				tx := harness.Begin(ctx, t, sh.DB, s.Level)
				if n, err := harness.Forms[0].Run(ctx, tx, w); n == 0 || err != nil {
					t.Fatalf("%s: %d rows, %v", w.Name, n, err)
				}
				session := 0
				if s.Dialect == sqlfence.Postgres {
					session = s.Session(t, tx)
				}
				var token int64
				issuing := harness.Go(func() (err error) {
					token, err = sh.Issue(context.WithoutCancel(ctx))
					return err
				})
				if s.Dialect == sqlfence.Postgres {
					sh.WantBlocked(t, session, issuing.Ended())
				} else {
					wantLocked(t, sh)
				}
				finish := tx.Commit
				if end == "rollback" {
					finish = tx.Rollback
				}
				if err := finish(); err != nil {
					t.Errorf("%s after %s: %v", end, w.Name, err)
				}
				if err := issuing.Wait(); token != 9 || err != nil {
					t.Errorf("issue after %s of %s: %d, %v", end, w.Name, token, err)
				}
				if changed := sh.State(t, false) != before; changed != (end == "commit") {
					t.Errorf("%s of %s: changed = %v", end, w.Name, changed)
				}
			}
		}
	})
}

// wantLocked fails the test unless SQLite refuses a writer that doesn't wait.
func wantLocked(t *testing.T, s *harness.Shop) {
	t.Helper()
	impatient := s.Raw(t, harness.Impatient(s.Source))
	_, err := impatient.Exec("UPDATE fencing_tokens SET token = token + 1")
	if err == nil || !strings.Contains(err.Error(), "locked") {
		t.Errorf("a token could be issued while a guarded write was open: %v", err)
	}
}
