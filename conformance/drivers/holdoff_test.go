package drivers

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
)

// A write that the ledger has let pass holds off the next token until its
// transaction ends: otherwise it could commit after that token was issued.
func TestG2LedgerHoldsOffTheNextTokenUntilCommit(t *testing.T) {
	eachSetting(t, func(t *testing.T, s setting) {
		sh := s.shop(t, sqlfence.Ledger())
		for _, w := range slices.Concat(rowWrites, freshInserts) {
			for _, end := range []string{"commit", "rollback"} {
				sh.reset(t, 8)
				before := sh.state(t, false)
				ctx := holding(t, 8)
				tx, err := sh.db.BeginTx(ctx, &sql.TxOptions{Isolation: s.level})
				if err != nil {
					t.Fatal(err)
				}
				if n, err := forms[0].run(ctx, tx, w); n == 0 || err != nil {
					t.Fatalf("%s: %d rows, %v", w.name, n, err)
				}
				done := make(chan struct{})
				var token int64
				var issueErr error
				go func() {
					defer close(done)
					token, issueErr = sh.issue(context.WithoutCancel(ctx))
				}()
				if s.dialect == sqlfence.Postgres {
					var pid int
					if err := tx.QueryRow("SELECT pg_backend_pid()").Scan(&pid); err != nil {
						t.Fatal(err)
					}
					sh.wantBlocked(t, pid, done)
				} else {
					sh.wantLocked(t)
				}
				finish := tx.Commit
				if end == "rollback" {
					finish = tx.Rollback
				}
				if err := finish(); err != nil {
					t.Errorf("%s after %s: %v", end, w.name, err)
				}
				<-done
				if token != 9 || issueErr != nil {
					t.Errorf("issue after %s of %s: %d, %v", end, w.name, token, issueErr)
				}
				if changed := sh.state(t, false) != before; changed != (end == "commit") {
					t.Errorf("%s of %s: changed = %v", end, w.name, changed)
				}
			}
		}
	})
}

// wantLocked fails the test unless SQLite refuses a writer that doesn't wait.
func (s *shop) wantLocked(t *testing.T) {
	t.Helper()
	impatient := s.raw(t, strings.Replace(s.source, "10000", "0", 1))
	_, err := impatient.Exec("UPDATE fencing_tokens SET token = token + 1")
	if err == nil || !strings.Contains(err.Error(), "locked") {
		t.Errorf("a token could be issued while a guarded write was open: %v", err)
	}
}
