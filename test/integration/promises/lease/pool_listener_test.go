package lease_test

import (
	"database/sql"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A waiter with a polling interval of an hour gets the lease as soon as another process releases it. It is notified on
// a connection of its own pool, fenced or not, with or without a limit on connections.
func TestLeasePoolListener(t *testing.T) {
	harness.EachStore(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.Postgres || !b.IsPgx() {
			t.Skip("its driver can't wait for a notification")
		}
		dsn := b.DSN(t)
		for _, most := range []int{0, 3} {
			fenced, plain := b.Fenced(t, dsn, harness.Books(sqlfence.Ledger())), b.Raw(t, dsn)
			fenced.SetMaxOpenConns(most)
			plain.SetMaxOpenConns(most)
			here := harness.NewLeases(t, fenced, lease.WithListener(lease.PoolListener(fenced)))
			there := harness.NewLeases(t, plain, lease.WithListener(lease.PoolListener(plain)))
			for range 3 {
				handOver(t, plain, there, here)
			}
		}
	})
}

// handOver makes here wait for a lease, and there release it once here listens.
func handOver(t *testing.T, db *sql.DB, there, here *lease.Leases) {
	t.Helper()
	holder := harness.MustAcquire(t, there, "jobs", lease.TTL(time.Hour))
	got := make(chan error, 1)
	go func() {
		l, err := here.Acquire(t.Context(), "jobs", lease.Timeout(harness.Patience), lease.Interval(time.Hour))
		if err == nil {
			err = l.Release(t.Context())
		}
		got <- err
	}()
	harness.Eventually(t, "a waiter's mark", func() bool {
		var marked bool
		err := db.QueryRow("SELECT notify_until > clock_timestamp() FROM fencing_leases WHERE key = 'jobs'").Scan(&marked)
		return err == nil && marked
	})
	if err := there.Release(t.Context(), holder.LockID()); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Fatal(err)
	}
}

// In a pool with one connection or two, and with a driver that can't listen, waiters poll, and no caller
// waits for the listener.
func TestLeasePoolListenerLeavesSmallPools(t *testing.T) {
	harness.EachStore(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.Postgres {
			if _, err := lease.New(b.Raw(t, b.DSN(t)), lease.WithListener(lease.PoolListener(b.Raw(t, b.DSN(t))))); err == nil {
				t.Error("a listener without NOTIFY was accepted")
			}
			return
		}
		dsn := b.DSN(t)
		for _, most := range []int{1, 2} {
			db := b.Raw(t, dsn)
			db.SetMaxOpenConns(most)
			polls(t, harness.NewLeases(t, b.Raw(t, dsn)), harness.NewLeases(t, db, lease.WithListener(lease.PoolListener(db))))
		}
		if !b.IsPgx() {
			db := b.Raw(t, dsn)
			polls(t, harness.NewLeases(t, b.Raw(t, dsn)), harness.NewLeases(t, db, lease.WithListener(lease.PoolListener(db))))
		}
	})
}

// polls checks that a waiter gets a lease that was released without a notification.
func polls(t *testing.T, there, here *lease.Leases) {
	t.Helper()
	holder := harness.MustAcquire(t, there, "jobs")
	released := time.AfterFunc(300*time.Millisecond, func() { _ = there.Release(t.Context(), holder.LockID()) })
	defer released.Stop()
	l, err := here.Acquire(t.Context(), "jobs", lease.Timeout(harness.Patience), lease.Retries(1<<20))
	if err != nil {
		t.Fatal(err)
	}
	harness.MustRelease(t, l)
}

// In a pool with a limit, a caller that waits for a connection gets the listener's.
func TestLeasePoolListenerGivesWay(t *testing.T) {
	harness.EachStore(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.Postgres || !b.IsPgx() {
			t.Skip("its driver can't wait for a notification")
		}
		dsn := b.DSN(t)
		db := b.Raw(t, dsn)
		db.SetMaxOpenConns(3)
		heard := make(chan string, 9)
		var ended chan error
		harness.Eventually(t, "it listens, also where a busy machine takes longer at first than it waits", func() bool {
			ended = make(chan error, 1)
			go func() {
				ended <- lease.PoolListener(db).Listen(t.Context(), "sqlfence_leases", func(s string) { heard <- s })
			}()
			select {
			case s := <-heard:
				if s != "" {
					t.Fatalf("heard %q", s)
				}
				return true
			case <-ended:
				return false
			}
		})
		for range 3 { // the third is the listener's
			tx, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback()
		}
		if err := <-ended; err == nil {
			t.Error("no error, though it doesn't listen any more")
		}
	})
}

// Where no caller waits, the listener costs no statement and no connection.
func TestLeasePoolListenerIsFreeWithoutWaiters(t *testing.T) {
	harness.EachStore(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.Postgres {
			t.Skip("there is no NOTIFY")
		}
		db, c := b.Counted(t, b.DSN(t))
		counted := func(opts ...lease.Option) (n int) {
			leases := harness.NewLeases(t, db, opts...)
			harness.MustRelease(t, harness.MustAcquire(t, leases, "jobs"))
			c.Reset()
			harness.MustRelease(t, harness.MustAcquire(t, leases, "jobs"))
			return len(c.Texts())
		}
		plain, listening := counted(), counted(lease.WithListener(lease.PoolListener(db)))
		if plain == 0 || listening != plain {
			t.Errorf("%d statements with a listener, %d without", listening, plain)
		}
		if n := db.Stats().InUse; n != 0 {
			t.Errorf("%d connections in use", n)
		}
	})
}
