package concurrency_test

import (
	"database/sql"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// These tests are about transactions in which a write was refused.

// A refusal ends a transaction of PostgreSQL: none of its writes stays, even if the application commits it.
func TestTxPostgresRollsBackWhole(t *testing.T) {
	harness.EachPostgres(t, func(t *testing.T, s harness.Setting) {
		for _, fence := range harness.Fences {
			sh := s.Shop(t, fence.Rule)
			for _, f := range s.Forms() {
				sh.Reset(t, 9)
				unchanged := sh.Unchanged(t)
				ctx := harness.Holding(t, 9)
				tx, err := sh.DB.BeginTx(ctx, &sql.TxOptions{Isolation: s.Level})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := tx.ExecContext(ctx, "UPDATE books SET price = 40 WHERE id = 2"); err != nil {
					t.Fatal(err)
				}
				_, err = f.Run(harness.Holding(t, 8), tx, harness.RowWrites[0])
				harness.WantStale(t, err, 8, 9)
				if _, err := tx.ExecContext(ctx, "UPDATE books SET price = 50 WHERE id = 3"); harness.SQLState(err) != "25P02" {
					t.Errorf("after a refusal by %s: %v, want 25P02", f.Name, err)
				}
				if err := tx.Commit(); err == nil {
					t.Errorf("commit after a refusal by %s succeeded", f.Name)
				}
				unchanged()
			}
		}
	})
}

// After a refusal PostgreSQL's transaction can continue at a savepoint. Other databases' can continue without one.
func TestTxGoesOnAfterARefusal(t *testing.T) {
	harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
		for _, fence := range harness.Fences {
			sh := s.Shop(t, fence.Rule)
			for _, f := range s.Forms() {
				for _, savepoint := range []bool{true, false} {
					if s.Dialect == sqlfence.Postgres && !savepoint {
						continue
					}
					for _, commit := range []bool{true, false} {
						sh.Reset(t, 9)
						goOn(t, sh, f, savepoint, commit)
						want := "1:10 2:10 3:10"
						if commit {
							want = "1:10 2:40 3:50"
						}
						if got := sh.State(t, false); got != want {
							t.Errorf("by %s, savepoint %v, commit %v: left %s, want %s", f.Name, savepoint, commit, got, want)
						}
					}
				}
			}
		}
	})
}

func goOn(t *testing.T, sh *harness.Shop, f harness.Form, savepoint, commit bool) {
	t.Helper()
	ctx := harness.Holding(t, 9)
	tx, err := sh.DB.BeginTx(ctx, &sql.TxOptions{Isolation: sh.Level})
	if err != nil {
		t.Fatal(err)
	}
	exec := func(query string) {
		t.Helper()
		if _, err := tx.ExecContext(ctx, query); err != nil {
			t.Errorf("%s: %v", query, err)
		}
	}
	exec("UPDATE books SET price = 40 WHERE id = 2")
	if savepoint {
		exec("SAVEPOINT earlier")
	}
	_, err = f.Run(harness.Holding(t, 8), tx, harness.RowWrites[0].As(sh.Dialect))
	harness.WantStale(t, err, 8, 9)
	if savepoint {
		exec("ROLLBACK TO SAVEPOINT earlier")
	}
	exec("UPDATE books SET price = 50 WHERE id = 3")
	end := tx.Rollback
	if commit {
		end = tx.Commit
	}
	if err := end(); err != nil {
		t.Errorf("end of the transaction: %v", err)
	}
}

// A rollback to a savepoint undoes the write, and releases the lock of the ledger. A later write is compared again.
func TestTxRolledBackToSavepointComparesAgain(t *testing.T) {
	harness.EachPostgres(t, func(t *testing.T, s harness.Setting) {
		sh := s.Shop(t, sqlfence.Ledger())
		sh.Reset(t, 8)
		unchanged := sh.Unchanged(t)
		err := sh.InTx(harness.Holding(t, 8), func(tx *sql.Tx) error {
			for _, query := range []string{"SAVEPOINT earlier", "UPDATE books SET price = 40", "ROLLBACK TO SAVEPOINT earlier"} {
				if _, err := tx.ExecContext(harness.Holding(t, 8), query); err != nil {
					t.Fatal(err)
				}
			}
			if token, err := sh.Issue(t.Context()); token != 9 || err != nil {
				t.Fatalf("issue: %d, %v", token, err)
			}
			_, err := tx.ExecContext(harness.Holding(t, 8), "UPDATE books SET price = 50")
			return err
		})
		wantRefused(t, sh, err)
		unchanged()
	})
}
