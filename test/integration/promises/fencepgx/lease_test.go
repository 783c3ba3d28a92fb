package fencepgx_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/fencepgx"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A waiter that would poll once an hour is notified of a release on a connection of the pool. The pool gets no
// connection back that still listens.
func TestLeaseListensOnThePool(t *testing.T) {
	if testing.Short() {
		t.Skip("a listener stays for a while")
	}
	s := newShop(t, sqlfence.Ledger())
	there := harness.NewLeases(t, s.Plain, lease.WithListener(lease.PoolListener(s.Plain)))
	here := harness.NewLeases(t, s.db.SQL(), lease.WithListener(lease.PoolListener(s.db.SQL())))
	for range 2 {
		holder := harness.MustAcquire(t, there, "jobs", lease.TTL(time.Hour))
		task := harness.Go(func() error {
			l, err := here.Acquire(t.Context(), "jobs", lease.Timeout(harness.Patience), lease.Interval(time.Hour))
			if err == nil {
				err = l.Release(t.Context())
			}
			return err
		})
		harness.Eventually(t, "a waiter's mark", func() bool {
			var marked bool
			err := s.Plain.QueryRow("SELECT notify_until > clock_timestamp() FROM fencing_leases WHERE key = 'jobs'").Scan(&marked)
			return err == nil && marked
		})
		if err := there.Release(t.Context(), holder.LockID()); err != nil {
			t.Fatal(err)
		}
		if err := task.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	s.givenBack(t)
	err := s.db.AcquireFunc(context.Background(), func(c *fencepgx.Conn) error {
		rows, _ := c.Query(t.Context(), "SELECT pg_listening_channels()")
		channels, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if len(channels) > 0 {
			t.Errorf("it still listens on %v", channels)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
