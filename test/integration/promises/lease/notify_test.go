package lease_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// eachListening runs test on every driver with notifications.
func eachListening(t *testing.T, test func(t *testing.T, b harness.Base, dsn string, listening lease.Option)) {
	t.Helper()
	harness.EachStore(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.Postgres {
			t.Skip("SQLite has no NOTIFY")
		}
		dsn, _ := ownDatabase(t, b) // all clients of a database get its notifications
		test(t, b, dsn, lease.WithListener(listeners[b.Name](dsn)))
	})
}

// A release notifies only if a caller is waiting for the key, because PostgreSQL serialises commits that notify.
func TestLeaseNotifiesWhereSomebodyWaits(t *testing.T) {
	eachListening(t, func(t *testing.T, b harness.Base, dsn string, listening lease.Option) {
		heard := make(chan string, 100)
		ctx, cancel := context.WithCancel(t.Context())
		var done sync.WaitGroup
		done.Go(func() { _ = listeners[b.Name](dsn).Listen(ctx, "sqlfence_leases", func(key string) { heard <- key }) })
		defer done.Wait()
		defer cancel()
		if first := <-heard; first != "" {
			t.Fatalf("heard %q", first)
		}
		here, there := harness.NewLeases(t, b.Raw(t, dsn), listening), harness.NewLeases(t, b.Raw(t, dsn), listening)
		for i := range 20 {
			harness.MustRelease(t, harness.MustAcquire(t, here, fmt.Sprint("own/", i%5)))
		}
		held := harness.MustAcquire(t, here, "jobs")
		if _, ok, err := there.TryAcquire(t.Context(), "jobs"); ok || err != nil {
			t.Errorf("%v, %v", ok, err)
		}
		got := make(chan error)
		go func() {
			l, err := there.Acquire(t.Context(), "jobs", lease.Timeout(harness.Patience), lease.Interval(time.Hour))
			if err == nil {
				err = l.Release(t.Context())
			}
			got <- err
		}()
		plain := b.Raw(t, dsn)
		harness.Eventually(t, "a waiter's mark", func() bool {
			var marked bool
			if err := plain.QueryRow("SELECT notify_until > clock_timestamp() FROM fencing_leases WHERE key = 'jobs'").Scan(&marked); err != nil {
				return false
			}
			return marked
		})
		harness.MustRelease(t, held)
		if err := <-got; err != nil {
			t.Error(err)
		}
		// Notifications arrive in the order of the commits, so an earlier one would have arrived before.
		if key := <-heard; key != "jobs" {
			t.Errorf("heard %q", key)
		}
	})
}

// Each release must wake a waiter. The waiters' polling interval is an hour, so a lost notification fails the test.
func TestLeaseNotificationsAreNotLost(t *testing.T) {
	eachListening(t, func(t *testing.T, b harness.Base, dsn string, listening lease.Option) {
		harness.NewLeases(t, b.Raw(t, dsn))
		harness.MustExec(t, b.Raw(t, dsn), "ALTER TABLE fencing_leases DROP COLUMN notify_until") // an older version
		var wg sync.WaitGroup
		for i := range 4 {
			leases := harness.NewLeases(t, b.Raw(t, dsn), listening)
			for range 4 {
				wg.Go(func() {
					for range 25 {
						l, err := leases.Acquire(t.Context(), "jobs", lease.Timeout(harness.Patience), lease.Interval(time.Hour), lease.TTL(time.Hour))
						if err != nil {
							t.Error(err)
							return
						}
						if i == 0 { // removes and recreates rows
							if _, err := leases.Sweep(t.Context()); err != nil {
								t.Error(err)
							}
						}
						if err := l.Release(t.Context()); err != nil {
							t.Error(err)
							return
						}
						if i == 0 {
							if _, err := leases.Sweep(t.Context()); err != nil {
								t.Error(err)
							}
						}
					}
				})
			}
		}
		wg.Wait()
	})
}
