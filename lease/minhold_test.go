package lease_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence/internal/test/fakedb"
	"github.com/sqlfence/sqlfence/lease"
)

// A lease that is released early stays taken for other processes until its minimum time has passed. A lease that is
// released later is free at once.
func TestMinHold(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		for _, works := range []time.Duration{0, 5 * time.Millisecond, 59 * time.Minute, time.Hour, 2 * time.Hour} {
			began := time.Now()
			err := leases.Do(t.Context(), "k", func(context.Context) error {
				time.Sleep(works)
				return nil
			}, lease.MinHold(time.Hour), lease.Resume("me"))
			if err != nil {
				t.Fatal(err)
			}
			if works < time.Hour {
				if _, ok, err := leases.TryAcquire(t.Context(), "k", lease.Resume("me")); ok || err != nil {
					t.Errorf("behind %v of work its owner has it again, %v", works, err)
				}
				time.Sleep(time.Until(began.Add(time.Hour - time.Millisecond)))
				if free(t, leases, "k") {
					t.Errorf("behind %v of work it is free early", works)
				}
				time.Sleep(time.Millisecond)
			}
			if !free(t, leases, "k") {
				t.Errorf("behind %v of work it is held after an hour", works)
			}
		}
	})
}

// Waiters learn the shorter end that a release has set, and don't wait for the TTL's end.
func TestMinHoldWakesWaiters(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		began := time.Now()
		first := acquire(t, leases, "k", lease.TTL(time.Hour), lease.MinHold(time.Second))
		got := make(chan error, 1)
		var after time.Duration
		go func() {
			l, err := leases.Acquire(t.Context(), "k", lease.Timeout(2*time.Hour), lease.Interval(time.Hour))
			if after = time.Since(began); err == nil {
				err = l.Release(t.Context())
			}
			got <- err
		}()
		time.Sleep(time.Millisecond)
		release(t, first)
		if err := <-got; err != nil || after < time.Second || after > 2*time.Second {
			t.Errorf("another has it after %v, %v; want a second", after, err)
		}
	})
}

// After its release under MinHold a lease's lock id is invalid. A release by the lock id frees the lease at once.
func TestMinHoldAndLockIDs(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		l := acquire(t, leases, "k", lease.MinHold(time.Hour), lease.Resume("me"))
		release(t, l)
		if _, err := leases.Extend(t.Context(), l.LockID(), time.Hour); !errors.Is(err, lease.ErrNotHeld) {
			t.Errorf("Extend: %v", err)
		}
		if err := leases.Release(t.Context(), l.LockID()); !errors.Is(err, lease.ErrNotHeld) {
			t.Errorf("Release: %v", err)
		}
		info, held, err := leases.Lookup(t.Context(), "k")
		if err != nil || !held || info.Holder != "" || info.LockID == l.LockID() || info.ExpiresAt.Sub(info.AcquiredAt) != time.Hour {
			t.Errorf("Lookup = %+v, %v, %v", info, held, err)
		}
		other := acquire(t, leases, "other", lease.MinHold(time.Hour))
		if err := leases.Release(t.Context(), other.LockID()); err != nil || !free(t, leases, "other") {
			t.Errorf("a release by lock id: %v", err)
		}
	})
}

// A release that is sent twice, because the response was lost, recognizes its first effect.
func TestMinHoldAnswerLost(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		l := acquire(t, leases, "k", lease.MinHold(time.Hour))
		lost := false
		d.losing(func(c fakedb.Call) error {
			if lost || !isRelease(c) {
				return nil
			}
			lost = true
			return driver.ErrBadConn
		})
		release(t, l)
		if !lost || free(t, leases, "k") {
			t.Errorf("lost the answer: %v, free: %v", lost, free(t, leases, "k"))
		}
	})
}
