package lease_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// eachMySQLGone runs do in a new simulated process, once for each message that it sends, and disconnects the process at
// this message. Afterwards another caller must get the lease. If the machine stalls, the lease may expire before do
// extends it, and the test is repeated.
func eachMySQLGone(t *testing.T, dsn string, direct *sql.DB, what string, do func(ctx context.Context, leases *lease.Leases, key string, arm func()) error) {
	t.Helper()
	next := harness.NewLeases(t, direct)
	for message, met := 0, true; met && message <= mostMessages; message++ {
		t.Run(fmt.Sprint(what, " ", message), func(t *testing.T) {
			tries := 0
			harness.Undisturbed(t, direct, 100*time.Millisecond, func() (err error) {
				tries++
				met, err = mysqlGone(t, dsn, message, next, fmt.Sprint(t.Name(), "/", tries), do)
				return err
			})
			wantFew(t, message, met)
		})
	}
}

// mysqlGone kills a process that runs do at its nth message, if it sends as many, and has next take the lease.
func mysqlGone(t *testing.T, dsn string, message int, next *lease.Leases, key string, do func(ctx context.Context, leases *lease.Leases, key string, arm func()) error) (met bool, err error) {
	t.Helper()
	network := new(harness.Faulty)
	leases, err := lease.New(harness.MySQL.Raw(t, network.DSN(t, dsn)), lease.WithDefaults(lease.Timeout(0)))
	if err != nil {
		t.Fatal(err)
	}
	defer network.End()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := harness.Go(func() error {
		return do(ctx, leases, key, func() {
			network.Arm(harness.Gone, func(byte, []byte) bool { message--; return message < 0 })
		})
	})
	harness.Eventually(t, "that it is gone, or done", func() bool {
		select {
		case <-done.Ended():
			return true
		default:
			return network.Met()
		}
	})
	if met = network.Met(); met {
		l, nextErr := next.Acquire(t.Context(), key, lease.Timeout(30*time.Second), lease.Interval(10*time.Millisecond))
		if nextErr != nil {
			err = fmt.Errorf("the next holder: %w", nextErr)
		} else {
			harness.MustRelease(t, l)
		}
	}
	cancel()
	if gone := done.Wait(); met && !errors.Is(gone, context.Canceled) {
		err = errors.Join(err, fmt.Errorf("who was gone: %w", gone))
	}
	return met, err
}

// A process disappears or is paused while it extends or releases its lease, at each message. After the TTL another
// caller must get the lease: the server still considers the session alive, but the session holds no lock.
func TestMySQLHolderIsGone(t *testing.T) {
	const ttl = 300 * time.Millisecond
	dsn := harness.MySQLDatabase(t)
	db := harness.MySQL.Raw(t, dsn)
	direct := harness.NewLeases(t, db)
	hold := func(key string) string {
		l, err := direct.Acquire(t.Context(), key, lease.Resume("me"), lease.TTL(ttl))
		if err != nil {
			t.Error(err)
			return ""
		}
		return l.LockID()
	}
	eachMySQLGone(t, dsn, db, "extend", func(ctx context.Context, leases *lease.Leases, key string, arm func()) error {
		id := hold(key)
		arm()
		_, err := leases.Extend(ctx, id, ttl)
		return err
	})
	eachMySQLGone(t, dsn, db, "release", func(ctx context.Context, leases *lease.Leases, key string, arm func()) error {
		id := hold(key)
		arm()
		return leases.Release(ctx, id)
	})
	eachMySQLGone(t, dsn, db, "refresh", func(ctx context.Context, leases *lease.Leases, key string, arm func()) error {
		hold(key)
		arm()
		_, _, err := leases.TryAcquire(ctx, key, lease.Resume("me"), lease.Refresh(), lease.TTL(ttl))
		return err
	})
}

// If a process is gone while it takes a free lease, the server has to end its session.
func TestMySQLTakerIsGone(t *testing.T) {
	dsn := harness.MySQLDatabase(t)
	patience := harness.MySQLWith(t, dsn, func(c *mysql.Config) { c.Params = map[string]string{"wait_timeout": "1"} })
	eachMySQLGone(t, patience, harness.MySQL.Raw(t, dsn), "take", func(ctx context.Context, leases *lease.Leases, key string, arm func()) error {
		arm()
		_, _, err := leases.TryAcquire(ctx, key, lease.TTL(300*time.Millisecond), lease.Timeout(0))
		return err
	})
}
