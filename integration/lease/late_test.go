package lease_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence/integration/harness"
	"github.com/sqlfence/sqlfence/lease"
)

// An attempt that reaches the server only after its caller, and the connection, have gone takes nothing for long.
func TestLeaseThatIsTakenLate(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if !b.Networked() {
			t.Skip("there is no network")
		}
		const key = "late/key"
		dsn := b.DSN(t)
		direct := harness.NewLeases(t, b.Raw(t, dsn))
		var sent atomic.Int64 // messages with the key, of all connections
		deliver, arrived := make(chan struct{}), make(chan struct{})
		leases := harness.NewLeases(t, b.Raw(t, harness.Relay(t, dsn, func(client, server net.Conn) {
			held := make(chan struct{})
			go harness.Pass(server, client, func(message []byte) {
				if bytes.Contains(message, []byte(key)) && sent.Add(1) == 1 {
					close(held)
					<-deliver
				}
			})
			harness.Pass(client, server, func([]byte) {
				select {
				case <-held: // by its answer the server has done it
					close(arrived)
					held = nil
				default:
				}
			})
		})))
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() { _, err := leases.Acquire(ctx, key, lease.TTL(time.Hour)); left <- err }()
		harness.Eventually(t, "the attempt", func() bool { return sent.Load() == 1 })
		cancel()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("Acquire: %v", err)
		}
		// The second time that it is undone, the first one has found nothing.
		harness.Eventually(t, "an attempt that is undone twice", func() bool { return sent.Load() == 3 })
		close(deliver)
		<-arrived
		l, err := direct.Acquire(t.Context(), key, lease.Wait(harness.Patience, 10*time.Millisecond))
		if err != nil {
			t.Fatalf("it is left behind: %v", err)
		}
		harness.MustRelease(t, l)
	})
}
