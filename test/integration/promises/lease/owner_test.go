package lease_test

import (
	"context"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// An owner's second attempt doesn't get the lease that an abandoned first attempt takes late: the late lease is
// released as soon as it is found.
func TestOwnersNewAttemptIsNotGivenTheAbandonedOne(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if !b.Networked() {
			t.Skip("there is one writer")
		}
		dsn := b.DSN(t)
		plain, db := b.Raw(t, dsn), b.Raw(t, dsn)
		db.SetMaxOpenConns(1)
		leases := harness.NewLeases(t, db)
		harness.MustRelease(t, harness.MustAcquire(t, leases, "pens"))
		tx := harness.Begin(t.Context(), t, plain, 0)
		if _, err := tx.Exec("UPDATE fencing_leases SET holder = 'x'"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		first := harness.Go(func() error { _, _, err := leases.TryAcquire(ctx, "pens", lease.Resume("w")); return err })
		harness.Eventually(t, "the first attempt waits", func() bool { return b.Waiting(t, plain) > 0 })
		cancel()
		if err := first.Wait(); err == nil {
			t.Fatal("the first attempt succeeded")
		}
		waits := db.Stats().WaitCount
		var l *lease.Lease
		second := harness.Go(func() (err error) {
			l, err = leases.Acquire(t.Context(), "pens", lease.Resume("w"), lease.Timeout(harness.Patience))
			return err
		})
		harness.Eventually(t, "the second attempt waits for the connection", func() bool { return db.Stats().WaitCount > waits })
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := second.Wait(); err != nil {
			t.Fatal(err)
		}
		for range 200 {
			if err := l.Extend(t.Context(), time.Minute); err != nil {
				t.Fatalf("the lease that Acquire returned: %v", err)
			}
		}
		harness.MustRelease(t, l)
	})
}
