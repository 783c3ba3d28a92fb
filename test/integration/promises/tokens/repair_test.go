package tokens_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

var rowMark = tokens.Mark{Table: "books", Column: "fence_token"}

func TestTokensRepair(t *testing.T) {
	harness.EachLedger(t, func(t *testing.T, b harness.Base, dsn string, db *sql.DB) {
		ctx := t.Context()
		store := setupStore(t, db)
		repair := func(floor int64) {
			t.Helper()
			if _, err := store.Repair(ctx, floor, tokens.AboveWarnToken()); err != nil {
				t.Fatal(err)
			}
		}
		harness.IssueToken(t, store, "books")
		if err := store.Adopt(ctx, sqlfence.Token{Name: "pens", Value: 90}); err != nil {
			t.Fatal(err)
		}
		for _, floor := range []int64{0, -1, sqlfence.MaxToken + 1} {
			if _, err := store.Repair(ctx, floor); errors.Is(err, sqlfence.ErrTokenLimit) != (floor > 0) || errors.Is(err, sqlfence.ErrInvalid) != (floor < 1) {
				t.Errorf("Repair to %d: %v", floor, err)
			}
		}
		harness.WantLedger(t, db, "books=1", "pens=90")
		wantReport := func(floor, newAbove int64, want []sqlfence.Token, opts ...tokens.RepairOption) {
			t.Helper()
			got, err := store.Repair(ctx, floor, opts...)
			if err != nil || got.NewAbove != newAbove || !slices.Equal(got.Tokens, want) {
				t.Errorf("a floor of %d: %+v, %v; want %v and %d", floor, got, err, want, newAbove)
			}
		}
		// A lower bound that uses up a tenth of all tokens must be requested explicitly; DryRun shows its effect.
		high := int64(sqlfence.WarnToken + 1)
		if _, err := store.Repair(ctx, high); !errors.Is(err, sqlfence.ErrInvalid) || !strings.Contains(err.Error(), "10.0 %") {
			t.Errorf("a floor of %d: %v", high, err)
		}
		wantReport(high, high, []sqlfence.Token{{Name: "books", Value: 1}, {Name: "pens", Value: 90}}, tokens.DryRun())
		wantReport(50, 50, []sqlfence.Token{{Name: "books", Value: 1}}, tokens.DryRun())
		harness.WantLedger(t, db, "books=1", "pens=90")
		wantReport(50, 50, []sqlfence.Token{{Name: "books", Value: 1}})
		wantReport(5, 50, nil)
		harness.WantLedger(t, db, "=50", "books=50", "pens=90")
		repair(10)
		harness.WantLedger(t, db, "=50", "books=50", "pens=90")
		if err := store.Ensure(ctx, "hats"); err != nil {
			t.Fatal(err)
		}
		// The floor applies to known names, to new names, and to a new Store.
		for name, want := range map[string]int64{"books": 51, "pens": 91, "hats": 51, "cups": 51} {
			for i := range int64(2) {
				if got := harness.IssueToken(t, harness.NewStore(t, db), name); got != want+i {
					t.Errorf("%s = %d, want %d", name, got, want+i)
				}
			}
		}
		for key, want := range map[string]int64{"books": 53, "jobs": 51} {
			l := harness.MustAcquire(t, harness.NewLeases(t, db), key)
			harness.WantToken(t, l, key, want)
			harness.MustRelease(t, l)
			harness.WantToken(t, harness.MustAcquire(t, harness.NewLeases(t, db), key), key, want+1)
		}
		repair(sqlfence.MaxToken - 20)
		var wg sync.WaitGroup
		results := make(chan error, 64)
		for range 64 {
			wg.Go(func() {
				_, err := store.Issue(ctx, "new")
				results <- err
			})
		}
		wg.Wait()
		close(results)
		issued := 0
		for err := range results {
			if err == nil {
				issued++
			} else if !errors.Is(err, sqlfence.ErrTokenLimit) {
				t.Error(err)
			}
		}
		if issued != 20 {
			t.Errorf("%d tokens issued, 20 were left", issued)
		}
		repair(sqlfence.MaxToken)
		if _, err := store.Issue(ctx, "newer"); !errors.Is(err, sqlfence.ErrTokenLimit) {
			t.Errorf("Issue of a new name over the limit: %v", err)
		}
		if _, err := harness.NewLeases(t, db).Acquire(ctx, "newer"); !errors.Is(err, sqlfence.ErrTokenLimit) {
			t.Errorf("Acquire of a new key over the limit: %v", err)
		}
	})
}

// After Repair a holder of an older token is stale under Ledger.
func TestTokensRepairMakesHoldersStale(t *testing.T) {
	harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
		sh := s.Shop(t, sqlfence.Ledger())
		sh.Reset(t, 8)
		if _, err := harness.NewStore(t, sh.DB).Repair(t.Context(), 20); err != nil {
			t.Fatal(err)
		}
		_, err := harness.Forms[0].Run(harness.Holding(t, 8), sh.DB, harness.RowWrites[0])
		harness.WantStale(t, err, 8, 20)
	})
}

// A caller waits for Repair, with a name that isn't in the ledger. It gets a token above the floor, also with a
// snapshot from before Repair.
func TestTokensRepairHoldsForNewNames(t *testing.T) {
	harness.EachPostgres(t, func(t *testing.T, s harness.Setting) {
		sh := s.Shop(t)
		app := s.Raw(t, sh.Source)
		store, leases := harness.NewStore(t, app), harness.NewLeases(t, app)
		for floor := int64(100); floor <= 300; floor += 100 {
			// The driver's prepared statements take their snapshot before they wait, as do statements that are running
			// when Repair begins.
			for i := range 4 {
				harness.IssueToken(t, store, fmt.Sprintf("warm-%d-%d", floor, i))
				issueMany(t, store, fmt.Sprintf("warmer-%d-%d", floor, i), fmt.Sprintf("warmest-%d-%d", floor, i))
				harness.MustRelease(t, harness.MustAcquire(t, leases, fmt.Sprintf("warm lease-%d-%d", floor, i)))
			}
			tx, err := sh.Plain.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec("LOCK TABLE fencing_tokens IN SHARE ROW EXCLUSIVE MODE"); err != nil {
				t.Fatal(err)
			}
			repaired := make(chan error, 1)
			go func() {
				_, err := harness.NewStore(t, sh.Plain).Repair(t.Context(), floor)
				repaired <- err
			}()
			waiting := func(n int) {
				t.Helper()
				harness.Eventually(t, "those who wait for the table", func() bool {
					var got int
					err := sh.Plain.QueryRow("SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'fencing_tokens'::regclass").Scan(&got)
					return err == nil && got >= n
				})
			}
			waiting(1)
			var callers sync.WaitGroup
			for i := range 2 {
				callers.Go(func() {
					token, err := store.Issue(t.Context(), fmt.Sprintf("new-%d-%d", floor, i))
					if err != nil || token.Value <= floor {
						t.Errorf("Issue of a new name = %v, %v; want one above %d", token, err, floor)
					}
				})
				callers.Go(func() {
					issued, err := store.IssueMany(t.Context(), fmt.Sprintf("newer-%d-%d", floor, i), fmt.Sprintf("newest-%d-%d", floor, i))
					if err != nil || issued[0].Value <= floor || issued[1].Value <= floor {
						t.Errorf("IssueMany of new names = %v, %v; want tokens above %d", issued, err, floor)
					}
				})
				callers.Go(func() {
					l, err := leases.Acquire(t.Context(), fmt.Sprintf("new lease-%d-%d", floor, i), lease.Timeout(harness.Patience))
					if err != nil || l.Token().Value <= floor {
						t.Errorf("Acquire of a new key = %v, %v; want a token above %d", l, err, floor)
					}
				})
			}
			waiting(7)
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
			callers.Wait()
			if err := <-repaired; err != nil {
				t.Fatal(err)
			}
		}
	})
}

// If a server hides its timeline, tokens are still issued, and the log explains the consequence once.
func TestTokensWithoutTimelines(t *testing.T) {
	for _, test := range []struct{ name, ddl string }{
		{"no privilege", "REVOKE EXECUTE ON FUNCTION pg_catalog.pg_walfile_name(pg_lsn) FROM PUBLIC"},
		{"no function", "ALTER FUNCTION pg_catalog.pg_walfile_name(pg_lsn) RENAME TO pg_walfile_gone"},
	} {
		t.Run(test.name, func(t *testing.T) {
			harness.EachStore(t, func(t *testing.T, b harness.Base) {
				if b.Dialect != sqlfence.Postgres {
					t.Skip("SQLite has no timelines")
				}
				// Functions belong to a database, so the test needs a separate database.
				admin := b.Raw(t, harness.PostgresDSN(t))
				role := "sqlfence_" + strings.ToLower(rand.Text())
				t.Cleanup(func() {
					if _, err := admin.ExecContext(context.Background(), "DROP ROLE IF EXISTS "+role); err != nil {
						t.Error(err)
					}
				})
				dsn := harness.PostgresDatabase(t)
				owner := b.Raw(t, dsn)
				for _, query := range []string{"CREATE ROLE " + role, "GRANT ALL ON SCHEMA public TO " + role, test.ddl} {
					harness.MustExec(t, owner, query)
				}
				var log bytes.Buffer
				logger := slog.New(slog.NewTextHandler(&log, nil))
				db := b.Raw(t, dsn+"&role="+role)
				store := setupStore(t, db, tokens.WithLogger(logger))
				for want := int64(1); want <= 3; want++ {
					if got := harness.IssueToken(t, store, "books"); got != want {
						t.Errorf("token = %d, want %d", got, want)
					}
				}
				if _, err := store.Repair(t.Context(), 50); err != nil {
					t.Fatal(err)
				}
				if got := harness.IssueToken(t, store, "books"); got != 51 {
					t.Errorf("token after Repair = %d, want 51", got)
				}
				if n := strings.Count(log.String(), "timeline"); n != 1 || !strings.Contains(log.String(), "level=WARN") {
					t.Errorf("logged %d times, want one warning:\n%s", n, &log)
				}
				harness.WantToken(t, harness.MustAcquire(t, harness.NewLeases(t, db, lease.WithLogger(logger)), "jobs"), "jobs", 51)
			})
		})
	}
}

// Two spellings of the same text are the same name, in every call.
func TestNamesAreNormalized(t *testing.T) {
	const composed, decomposed = "caf\u00e9", "cafe\u0301"
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		ctx := t.Context()
		dsn := b.DSN(t)
		db := b.Raw(t, dsn)
		store := setupStore(t, db)
		if err := store.Ensure(ctx, decomposed); err != nil {
			t.Fatal(err)
		}
		for i, name := range []string{decomposed, composed} {
			token, err := store.Issue(ctx, name)
			if want := (sqlfence.Token{Name: composed, Value: int64(i + 1)}); token != want || err != nil {
				t.Errorf("Issue of %+q = %+q, %v; want %+q", name, token, err, want)
			}
			if current, err := store.Current(ctx, name); current != token || err != nil {
				t.Errorf("Current of %+q = %+q, %v", name, current, err)
			}
		}
		if err := store.Adopt(ctx, sqlfence.Token{Name: decomposed, Value: 8}); err != nil {
			t.Fatal(err)
		}
		harness.WantLedger(t, db, composed+"=8")
		harness.WantToken(t, harness.MustAcquire(t, harness.NewLeases(t, db), decomposed), composed, 9)

		harness.MustExec(t, db, "CREATE TABLE books (id varchar(20) PRIMARY KEY, price integer, fence_token bigint)")
		harness.MustExec(t, db, "INSERT INTO books (id, price) VALUES ('x', 1)")
		for _, name := range []string{composed, decomposed} {
			for _, resource := range []string{composed, decomposed} {
				fenced := b.Fenced(t, dsn, sqlfence.WithTable("books", sqlfence.Ledger(), sqlfence.Resource(resource)))
				held := sqlfence.WithFence(ctx, sqlfence.Token{Name: name, Value: 9})
				if _, err := fenced.ExecContext(held, "UPDATE books SET price = 2"); err != nil {
					t.Errorf("token %+q, resource %+q: %v", name, resource, err)
				}
			}
		}
		keyed := b.Fenced(t, dsn, sqlfence.WithTable("books", sqlfence.RowFence("fence_token"), sqlfence.Key("id")))
		held := sqlfence.WithFence(ctx, sqlfence.Token{Name: "books/" + decomposed, Value: 1})
		insert := "INSERT INTO books (id, price) VALUES ($1, 1)"
		if b.Dialect == sqlfence.SQLite {
			insert = "INSERT INTO books (id, price) VALUES (?, 1)"
		}
		for _, send := range []func(key string) error{
			func(key string) error { _, err := keyed.ExecContext(held, insert, key); return err },
			func(key string) error {
				_, err := keyed.ExecContext(held, "INSERT INTO books (id, price) VALUES ('"+key+"', 1) ON CONFLICT (id) DO UPDATE SET price = 2")
				return err
			},
		} {
			if err := send(decomposed); !errors.Is(err, sqlfence.ErrUnguardable) || !strings.Contains(err.Error(), "NFC") {
				t.Errorf("INSERT of a key that no token can name: %v", err)
			}
			if err := send(composed); err != nil {
				t.Errorf("INSERT of a normalised key: %v", err)
			}
		}
		if _, err := store.Rotate(ctx, decomposed, tokens.RetireAll()); err != nil { // the name has a live lease
			t.Error(err)
		}
		if rows := harness.LedgerRows(t, db); !slices.Contains(rows, fmt.Sprintf("%s=%d", composed, int64(sqlfence.MaxToken+1))) {
			t.Errorf("rotated: %q", rows)
		}
	})
}
