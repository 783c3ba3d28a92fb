package lease_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence/integration/harness"
	"github.com/sqlfence/sqlfence/lease"
)

// eachMySQLGone runs do, of a new process, once for each message that it sends, with which the process is gone.
// From then on next must get the lease.
func eachMySQLGone(t *testing.T, dsn, what string, next *lease.Leases, do func(ctx context.Context, leases *lease.Leases, key string, arm func()) error) {
	t.Helper()
	for message, met := 0, true; met; message++ {
		t.Run(fmt.Sprint(what, " ", message), func(t *testing.T) {
			network := new(harness.Faulty)
			leases := harness.NewLeases(t, harness.MySQL.Raw(t, network.DSN(t, dsn)))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			skip := message
			done := make(chan error, 1)
			go func() {
				done <- do(ctx, leases, t.Name(), func() {
					network.Arm(harness.Gone, func(byte, []byte) bool { skip--; return skip < 0 })
				})
			}()
			harness.Eventually(t, "that it is gone, or done", func() bool { return network.Met() || len(done) == 1 })
			if met = network.Met(); met {
				l, err := next.Acquire(t.Context(), t.Name(), lease.Wait(10*time.Second, 10*time.Millisecond))
				if err != nil {
					t.Errorf("the next holder: %v", err)
				} else {
					harness.MustRelease(t, l)
				}
			}
			cancel()
			if err := <-done; met && !errors.Is(err, context.Canceled) {
				t.Errorf("who was gone: %v", err)
			}
			network.End()
		})
		if message > 20 {
			t.Fatal("too many messages")
		}
	}
}

// A process that is gone, or stopped, in the midst of extending or releasing its lease keeps nobody
// from having it once its ttl is over, at whichever message: its session, which the server takes for
// alive, holds no lock.
func TestMySQLHolderIsGone(t *testing.T) {
	const ttl = 300 * time.Millisecond
	dsn := harness.MySQLDatabase(t)
	direct := harness.NewLeases(t, harness.MySQL.Raw(t, dsn))
	hold := func(key string) string {
		l, err := direct.Acquire(t.Context(), key, lease.Owner("me"), lease.TTL(ttl))
		if err != nil {
			t.Error(err)
			return ""
		}
		return l.LockID()
	}
	eachMySQLGone(t, dsn, "extend", direct, func(ctx context.Context, leases *lease.Leases, key string, arm func()) error {
		id := hold(key)
		arm()
		_, err := leases.Extend(ctx, id, ttl)
		return err
	})
	eachMySQLGone(t, dsn, "release", direct, func(ctx context.Context, leases *lease.Leases, key string, arm func()) error {
		id := hold(key)
		arm()
		return leases.Release(ctx, id)
	})
	eachMySQLGone(t, dsn, "refresh", direct, func(ctx context.Context, leases *lease.Leases, key string, arm func()) error {
		hold(key)
		arm()
		_, _, err := leases.TryAcquire(ctx, key, lease.Owner("me"), lease.Refresh(), lease.TTL(ttl))
		return err
	})
}

// Of one that is gone while it takes a free lease the server has to end the session.
func TestMySQLTakerIsGone(t *testing.T) {
	dsn := harness.MySQLDatabase(t)
	direct := harness.NewLeases(t, harness.MySQL.Raw(t, dsn))
	patience := harness.MySQLWith(t, dsn, func(c *mysql.Config) { c.Params = map[string]string{"wait_timeout": "1"} })
	eachMySQLGone(t, patience, "take", direct, func(ctx context.Context, leases *lease.Leases, key string, arm func()) error {
		arm()
		_, _, err := leases.TryAcquire(ctx, key, lease.TTL(300*time.Millisecond), lease.Timeout(0))
		return err
	})
}
