package drivers

import (
	"database/sql"
	"testing"

	"github.com/sqlfence/sqlfence"
)

// What becomes of a transaction in which a write was refused.

// A refusal ends a transaction of PostgreSQL: nothing of it stays, even if it is
// committed.
func TestTxPostgresRollsBackWhole(t *testing.T) {
	eachPostgres(t, func(t *testing.T, s setting) {
		for _, fence := range fences {
			sh := s.shop(t, fence.rule)
			for _, f := range forms {
				sh.reset(t, 9)
				unchanged := sh.unchanged(t)
				ctx := holding(t, 9)
				tx, err := sh.db.BeginTx(ctx, &sql.TxOptions{Isolation: s.level})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := tx.ExecContext(ctx, "UPDATE books SET price = 40 WHERE id = 2"); err != nil {
					t.Fatal(err)
				}
				_, err = f.run(holding(t, 8), tx, rowWrites[0])
				wantStale(t, err, 8, 9)
				if _, err := tx.ExecContext(ctx, "UPDATE books SET price = 50 WHERE id = 3"); sqlCode(err) != "25P02" {
					t.Errorf("after a refusal by %s: %v, want 25P02", f.name, err)
				}
				if err := tx.Commit(); err == nil {
					t.Errorf("commit after a refusal by %s succeeded", f.name)
				}
				unchanged()
			}
		}
	})
}

// With a savepoint a transaction of PostgreSQL can go on, and SQLite's can
// without.
func TestTxGoesOnAfterARefusal(t *testing.T) {
	eachSetting(t, func(t *testing.T, s setting) {
		for _, fence := range fences {
			sh := s.shop(t, fence.rule)
			for _, f := range forms {
				for _, savepoint := range []bool{true, false} {
					if s.dialect == sqlfence.Postgres && !savepoint {
						continue
					}
					for _, commit := range []bool{true, false} {
						sh.reset(t, 9)
						goOn(t, sh, f, savepoint, commit)
						want := "1:10 2:10 3:10"
						if commit {
							want = "1:10 2:40 3:50"
						}
						if got := sh.state(t, false); got != want {
							t.Errorf("by %s, savepoint %v, commit %v: left %s, want %s", f.name, savepoint, commit, got, want)
						}
					}
				}
			}
		}
	})
}

func goOn(t *testing.T, sh *shop, f form, savepoint, commit bool) {
	t.Helper()
	ctx := holding(t, 9)
	tx, err := sh.db.BeginTx(ctx, &sql.TxOptions{Isolation: sh.level})
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
		exec("SAVEPOINT before")
	}
	_, err = f.run(holding(t, 8), tx, rowWrites[0].as(sh.dialect))
	wantStale(t, err, 8, 9)
	if savepoint {
		exec("ROLLBACK TO SAVEPOINT before")
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

// The lock on the ledger goes with the savepoint, and so does the write. What is
// written again afterwards is compared again.
func TestTxRolledBackToSavepointComparesAgain(t *testing.T) {
	eachPostgres(t, func(t *testing.T, s setting) {
		sh := s.shop(t, sqlfence.Ledger())
		sh.reset(t, 8)
		unchanged := sh.unchanged(t)
		err := sh.inTx(holding(t, 8), func(tx *sql.Tx) error {
			for _, query := range []string{"SAVEPOINT before", "UPDATE books SET price = 40", "ROLLBACK TO SAVEPOINT before"} {
				if _, err := tx.ExecContext(holding(t, 8), query); err != nil {
					t.Fatal(err)
				}
			}
			if token, err := sh.issue(t.Context()); token != 9 || err != nil {
				t.Fatalf("issue: %d, %v", token, err)
			}
			_, err := tx.ExecContext(holding(t, 8), "UPDATE books SET price = 50")
			return err
		})
		sh.wantRefused(t, err)
		unchanged()
	})
}
