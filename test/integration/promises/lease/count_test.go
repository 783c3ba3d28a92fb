package lease_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// counts are the numbers of statements of each method. look reads one lease, or all.
type counts struct {
	acquire, again, held, extend, release, look int

	acquireTrips, releaseTrips int // round trips; 0 for a verb that is one statement
}

// On PostgreSQL each verb is one statement. On SQLite Acquire is two statements in a transaction, because one statement
// can't write to two tables. On MySQL one statement checks, and a transaction takes the lease; for a new key statements
// that insert the rows come first. Extending and releasing take a second statement for the result.
var countsOf = map[sqlfence.Dialect]counts{
	sqlfence.Postgres: {acquire: 1, again: 1, held: 1, extend: 1, release: 1, look: 1},
	sqlfence.SQLite:   {acquire: 2, again: 2, held: 2, extend: 1, release: 1, look: 1},
	sqlfence.MySQL:    {acquire: 7, again: 4, held: 1, extend: 2, release: 2, look: 1, acquireTrips: 6, releaseTrips: 2},
}

func TestLeaseStatements(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		db, c := b.Counted(t, b.DSN(t))
		leases := harness.NewLeases(t, db)
		var l *lease.Lease
		ctx, of := t.Context(), countsOf[b.Dialect]
		count := func(verb string, want int, send func() error) {
			t.Helper()
			c.Reset()
			if err := send(); err != nil {
				t.Fatal(err)
			}
			// BEGIN and COMMIT aren't counted.
			calls := slices.DeleteFunc(c.Calls(), func(one harness.Call) bool { return one.Kind == "begin" })
			if len(calls) != want {
				t.Errorf("%s: %d statements, want %d: %v", verb, len(calls), want, calls)
			}
		}
		count("acquire", of.acquire, func() (err error) { l, err = leases.Acquire(ctx, "jobs"); return err })
		count("held", of.held, func() (err error) { _, _, err = leases.TryAcquire(ctx, "jobs"); return err })
		count("extend", of.extend, func() error { return l.Extend(ctx, time.Hour) })
		count("lookup", of.look, func() (err error) { _, _, err = leases.Lookup(ctx, "jobs"); return err })
		count("lookup by id", of.look, func() (err error) { _, _, err = leases.LookupID(ctx, l.LockID()); return err })
		count("is locked", of.look, func() (err error) { _, err = leases.IsLocked(ctx, "jobs"); return err })
		count("list", of.look, func() (err error) { _, err = leases.List(ctx); return err })
		count("release", of.release, func() error { return l.Release(ctx) })
		count("acquire again", of.again, func() (err error) { l, err = leases.Acquire(ctx, "jobs"); return err })
		count("release again", of.release, func() error { return l.Release(ctx) })
		count("do", of.again+of.release, func() error { return leases.Do(ctx, "jobs", func(context.Context) error { return nil }) })
	})
}

// A driver's call may take several round trips. The test compares each method with the plainest statement, which needs
// as many. On MySQL taking a lease is a query and a transaction, and a release is two statements.
func TestLeaseRoundTrips(t *testing.T) {
	harness.EachStore(t, func(t *testing.T, b harness.Base) {
		if !b.Networked() {
			t.Skip("SQLite has no network")
		}
		p := harness.NewProxy(t, b.DSN(t))
		db := b.Raw(t, p.DSN)
		db.SetMaxOpenConns(1)
		leases := harness.NewLeases(t, db)
		var plain, acquire, release int
		for range 3 { // pgx first prepares; the last round counts
			plain = p.Trips(func() { harness.MustExec(t, db, "DELETE FROM fencing_leases WHERE holder = $1", "none") })
			var l *lease.Lease
			acquire = p.Trips(func() { l = harness.MustAcquire(t, leases, "jobs") })
			release = p.Trips(func() { harness.MustRelease(t, l) })
		}
		of := countsOf[b.Dialect]
		for what, trips := range map[string][2]int{"acquire": {acquire, of.acquireTrips}, "release": {release, of.releaseTrips}} {
			if want := max(trips[1], plain); trips[0] != want {
				t.Errorf("%s: %d round trips, want %d", what, trips[0], want)
			}
		}
	})
}
