package lease_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/integration/harness"
	"github.com/sqlfence/sqlfence/lease"
)

// Each verb is one statement on PostgreSQL; on SQLite, which can't write to two
// tables by one, Acquire is two in a transaction.
func TestLeaseStatements(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		db, c := b.Counted(t, b.DSN(t))
		leases := harness.NewLeases(t, db)
		var l *lease.Lease
		ctx := t.Context()
		count := func(verb string, postgres, sqlite int, send func() error) {
			t.Helper()
			c.Reset()
			if err := send(); err != nil {
				t.Fatal(err)
			}
			want := postgres
			if b.Dialect == sqlfence.SQLite {
				want = sqlite
			}
			// A "begin" is a statement too, but its end isn't seen.
			calls := slices.DeleteFunc(c.Calls(), func(one harness.Call) bool { return one.Kind == "begin" && want > 0 && b.Dialect == sqlfence.SQLite })
			if len(calls) != want {
				t.Errorf("%s: %d statements, want %d: %v", verb, len(calls), want, calls)
			}
		}
		count("acquire", 1, 2, func() (err error) { l, err = leases.Acquire(ctx, "jobs"); return err })
		count("held", 1, 2, func() (err error) { _, _, err = leases.TryAcquire(ctx, "jobs"); return err })
		count("extend", 1, 1, func() error { return l.Extend(ctx, time.Minute) })
		count("lookup", 1, 1, func() (err error) { _, _, err = leases.Lookup(ctx, "jobs"); return err })
		count("lookup by id", 1, 1, func() (err error) { _, _, err = leases.LookupID(ctx, l.LockID()); return err })
		count("is locked", 1, 1, func() (err error) { _, err = leases.IsLocked(ctx, "jobs"); return err })
		count("list", 1, 1, func() (err error) { _, err = leases.List(ctx); return err })
		count("release", 1, 1, func() error { return l.Release(ctx) })
		count("acquire again", 1, 2, func() (err error) { l, err = leases.Acquire(ctx, "jobs"); return err })
		count("release again", 1, 1, func() error { return l.Release(ctx) })
		count("do", 2, 3, func() error { return leases.Do(ctx, "jobs", func(context.Context) error { return nil }) })
	})
}

// What a driver does in one call may be several round trips: it is not more than
// for the plainest statement.
func TestLeaseRoundTrips(t *testing.T) {
	harness.EachStore(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.Postgres {
			t.Skip("SQLite has no network")
		}
		p := harness.NewProxy(t, b.DSN(t))
		db := b.Raw(t, p.DSN)
		db.SetMaxOpenConns(1)
		leases := harness.NewLeases(t, db)
		var plain, acquire, release int
		for range 3 { // pgx prepares at first, so the last one counts
			plain = p.Trips(func() { harness.MustExec(t, db, "DELETE FROM fencing_leases WHERE key = $1", "none") })
			var l *lease.Lease
			acquire = p.Trips(func() { l = harness.MustAcquire(t, leases, "jobs") })
			release = p.Trips(func() { harness.MustRelease(t, l) })
		}
		if acquire != plain || release != plain {
			t.Errorf("round trips: acquire %d, release %d, a plain statement %d", acquire, release, plain)
		}
	})
}
