package lease_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// eachMySQLCancel runs test once for each message that the client sends. The context that arm returns ends when that
// message is sent. It stops after the first message number that the test doesn't reach.
func eachMySQLCancel(t *testing.T, test func(t *testing.T, db *sql.DB, direct *lease.Leases, key string, arm func() context.Context)) {
	t.Helper()
	dsn := harness.MySQLDatabase(t)
	direct := harness.NewLeases(t, harness.MySQL.Raw(t, dsn))
	network := new(harness.Faulty)
	through := network.DSN(t, dsn)
	for name, db := range map[string]*sql.DB{"raw": harness.MySQL.Raw(t, through), "fenced": harness.MySQL.Fenced(t, through, harness.Books())} {
		for message, met := 0, true; met && message <= mostMessages; message++ {
			t.Run(fmt.Sprint(name, " ", message), func(t *testing.T) {
				met = false
				test(t, db, direct, t.Name(), func() context.Context {
					ctx, cancel := context.WithCancel(t.Context())
					t.Cleanup(cancel)
					skip := message
					met = met || network.Met()
					network.Arm(harness.NoFault, func(byte, []byte) bool {
						if skip--; skip < 0 {
							cancel()
						}
						return skip < 0
					})
					return ctx
				})
				met = met || network.Met()
				network.Arm(harness.NoFault, nil)
				harness.Eventually(t, "that the connections are free", func() bool { return db.Stats().InUse == 0 })
				wantFew(t, message, met)
			})
		}
	}
}

// An attempt is cancelled at each of its messages. It has the lease, or leaves none, and no token is issued twice.
func TestMySQLAcquireIsCancelled(t *testing.T) {
	eachMySQLCancel(t, func(t *testing.T, db *sql.DB, direct *lease.Leases, key string, arm func() context.Context) {
		leases := harness.NewLeases(t, db)
		var last int64
		for range 2 { // first of a new key, then of one with a row
			l, ok, err := leases.TryAcquire(arm(), key, lease.TTL(time.Hour), lease.Timeout(0))
			switch {
			case ok:
				if l.Token().Value <= last {
					t.Errorf("the token %v after %d", l.Token(), last)
				}
				last = l.Token().Value
				if err := leases.Release(context.Background(), l.LockID()); err != nil {
					t.Error(err)
				}
			case err != nil && !errors.Is(err, context.Canceled): // nil: what the first attempt took isn't undone yet
				t.Errorf("TryAcquire: %v", err)
			}
			wantFree(t, direct, key)
			next := harness.MustAcquire(t, direct, key)
			if next.Token().Value <= last {
				t.Errorf("the token %v after %d", next.Token(), last)
			}
			last = next.Token().Value
			harness.MustRelease(t, next)
		}
	})
}

// Extend and Release are cancelled at each message. The call has then succeeded or has changed nothing, and the lease
// is never left held without a holder.
func TestMySQLExtendAndReleaseAreCancelled(t *testing.T) {
	eachMySQLCancel(t, func(t *testing.T, db *sql.DB, direct *lease.Leases, key string, arm func() context.Context) {
		leases := harness.NewLeases(t, db)
		l := harness.MustAcquire(t, direct, key, lease.TTL(time.Hour))
		if _, err := leases.Extend(arm(), l.LockID(), 2*time.Hour); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("Extend: %v", err)
		}
		if _, live, err := direct.LookupID(t.Context(), l.LockID()); !live || err != nil {
			t.Errorf("after Extend: %v, %v", live, err)
		}
		err := leases.Release(arm(), l.LockID())
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("Release: %v", err)
		}
		if again := direct.Release(t.Context(), l.LockID()); again != nil && !errors.Is(again, lease.ErrNotHeld) || again == nil && err == nil {
			t.Errorf("Release: %v, then %v", err, again)
		}
		wantFree(t, direct, key)
	})
}
