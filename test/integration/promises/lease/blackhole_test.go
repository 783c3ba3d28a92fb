package lease_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A waiter's connection no longer responds. The other waiters for the lease still get it, and nobody takes the lease
// for held.
func TestLeaseOneBlackHoleStopsNobodyElse(t *testing.T) {
	harness.EachBlackhole(t, func(t *testing.T, b harness.Base, h *harness.Blackhole) {
		leases := harness.NewLeases(t, b.Raw(t, h.DSN))
		h.Arm(1)
		ctx, cancel := context.WithCancel(t.Context())
		stuck := waitFor(t, ctx, leases, lease.Timeout(0))
		harness.Eventually(t, "a swallowed attempt", func() bool { return h.Count() == 1 })
		var others []<-chan error
		for range 4 {
			others = append(others, waitFor(t, t.Context(), leases, lease.Timeout(harness.Patience)))
		}
		for _, other := range others {
			if err := <-other; err != nil {
				t.Errorf("another waiter: %v", err)
			}
		}
		cancel()
		if err := <-stuck; !errors.Is(err, context.Canceled) {
			t.Errorf("the swallowed waiter: %v", err)
		}
		h.End()
	})
}

// If the database doesn't respond to any caller, no caller reports that the lease is held.
func TestLeaseWithoutAnAnswerIsNotHeld(t *testing.T) {
	harness.EachBlackhole(t, func(t *testing.T, b harness.Base, h *harness.Blackhole) {
		leases := harness.NewLeases(t, b.Raw(t, h.DSN))
		h.Arm(1 << 20)
		var all []<-chan error
		for range 4 {
			all = append(all, waitFor(t, t.Context(), leases, lease.Timeout(400*time.Millisecond)))
		}
		for _, one := range all {
			if err := <-one; err == nil || errors.Is(err, lease.ErrHeld) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("without an answer: %v", err)
			}
		}
		h.End()
	})
}

// A caller may give up in the queue, before its own first attempt. The caller's error names the holder, as another
// caller of the process has found it.
func TestLeaseWaiterInLineKnowsTheHolder(t *testing.T) {
	eachLeases(t, func(t *testing.T, b harness.Base, _ *sql.DB, leases *lease.Leases) {
		holder := harness.MustAcquire(t, leases, "jobs", lease.Resume("holder"))
		ctx, cancel := context.WithCancel(t.Context())
		first := waitFor(t, ctx, leases, lease.Timeout(time.Hour), lease.Interval(time.Hour))
		var held *lease.HeldError
		harness.Eventually(t, "a waiter that stands behind the first", func() bool {
			_, err := leases.Acquire(t.Context(), "jobs", lease.Timeout(50*time.Millisecond))
			return errors.As(err, &held) && held.Attempts == 0
		})
		if held.Holder != "holder" || !held.Until.Equal(holder.ExpiresAt()) {
			t.Errorf("%+v, want the holder's until %v", held, holder.ExpiresAt())
		}
		cancel()
		<-first
	})
}
