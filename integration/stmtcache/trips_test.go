package stmtcache_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/integration/harness"
)

// Round trips of an Exec with arguments, once it has run a few times: alone, and those of a
// refusal beside a CHECK's on the bare driver.
func TestRoundTrips(t *testing.T) {
	want := map[string]struct{ success, refusal int }{
		"pq":    {1, 1},
		"pgx":   {1, 1},
		"mysql": {1, 1},
	}
	for _, fence := range harness.Fences {
		t.Run(fence.Name, func(t *testing.T) {
			harness.EachBase(t, func(t *testing.T, b harness.Base) {
				if !b.Networked() {
					t.Skip("SQLite has no network")
				}
				s := harness.NewShop(t, b)
				s.Exec(t, "ALTER TABLE books ADD CHECK (price < 1000)")
				p := harness.NewProxy(t, s.Source)
				raw := b.Raw(t, p.DSN)
				off := b.Fenced(t, p.DSN, harness.Books(fence.Rule))
				on := b.Fenced(t, p.DSN, harness.Books(fence.Rule), sqlfence.WithStatementCache(8))
				s.Reset(t, 9)
				fresh, stale := harness.Holding(t, 9), harness.Holding(t, 8)
				trips := func(db *sql.DB, ctx context.Context, price int, refused func(error) bool) (n int) {
					t.Helper()
					for range 4 {
						n = p.Trips(func() {
							_, err := db.ExecContext(ctx, "UPDATE books SET price = $1 WHERE id = $2", price, 1)
							if !refused(err) {
								t.Fatalf("err = %v", err)
							}
						})
					}
					return n
				}
				none := func(err error) bool { return err == nil }
				isStale := func(err error) bool { return errors.Is(err, sqlfence.ErrStale) }
				isCheck := func(err error) bool { return err != nil && !isStale(err) }

				check := trips(raw, t.Context(), 2000, isCheck)
				if n := trips(off, stale, 30, isStale); n > check {
					t.Errorf("a refusal takes %d round trips, that of a CHECK %d", n, check)
				}
				if n, plain := trips(off, fresh, 30, none), trips(raw, t.Context(), 30, none); n != plain {
					t.Errorf("%d round trips, the plain write takes %d", n, plain)
				}
				want := want[b.Name]
				if n := trips(on, fresh, 30, none); n != want.success {
					t.Errorf("kept: %d round trips, want %d", n, want.success)
				}
				if n := trips(on, stale, 30, isStale); n != want.refusal {
					t.Errorf("kept: a refusal takes %d round trips, want %d; that of a CHECK %d", n, want.refusal, check)
				}
				if n := trips(on, fresh, 2000, isCheck); n != want.refusal {
					t.Errorf("kept: the CHECK takes %d round trips, want %d", n, want.refusal)
				}
				t.Logf("a CHECK on the bare driver: %d", check)
			})
		})
	}
}
