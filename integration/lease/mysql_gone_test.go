package lease_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence/integration/harness"
	"github.com/sqlfence/sqlfence/lease"
)

// A process that is gone, or stopped, in the midst of extending or releasing its lease keeps nobody
// from having it once its ttl is over, at whichever message: its session, which the server takes for
// alive, holds no lock.
func TestMySQLHolderIsGone(t *testing.T) {
	const ttl = 300 * time.Millisecond
	dsn := harness.MySQLDatabase(t)
	direct := harness.NewLeases(t, harness.MySQL.Raw(t, dsn))
	for what, do := range map[string]func(ctx context.Context, leases *lease.Leases, l *lease.Lease, key string) error{
		"extend": func(ctx context.Context, leases *lease.Leases, l *lease.Lease, _ string) error {
			_, err := leases.Extend(ctx, l.LockID(), ttl)
			return err
		},
		"release": func(ctx context.Context, leases *lease.Leases, l *lease.Lease, _ string) error {
			return leases.Release(ctx, l.LockID())
		},
		"refresh": func(ctx context.Context, leases *lease.Leases, l *lease.Lease, key string) error {
			_, _, err := leases.TryAcquire(ctx, key, lease.Owner("me"), lease.Refresh(), lease.TTL(ttl))
			return err
		},
	} {
		for message, met := 0, true; met; message++ {
			t.Run(fmt.Sprint(what, " ", message), func(t *testing.T) {
				network := new(harness.Faulty)
				leases := harness.NewLeases(t, harness.MySQL.Raw(t, network.DSN(t, dsn)))
				l := harness.MustAcquire(t, direct, t.Name(), lease.Owner("me"), lease.TTL(ttl))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				skip := message
				network.Arm(harness.Gone, func(byte, []byte) bool { skip--; return skip < 0 })
				done := make(chan error, 1)
				go func() { done <- do(ctx, leases, l, t.Name()) }()
				harness.Eventually(t, "that it is gone, or done", func() bool { return network.Met() || len(done) == 1 })
				met = network.Met()
				next, err := direct.Acquire(t.Context(), t.Name(), lease.Wait(10*time.Second, 10*time.Millisecond))
				if err != nil {
					t.Errorf("the next holder: %v", err)
				} else {
					harness.MustRelease(t, next)
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
}
