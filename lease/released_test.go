package lease_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlfence/sqlfence/internal/test/fakedb"
	"github.com/sqlfence/sqlfence/lease"
)

// A release under a context that has ended, or ends before the answer, returns the context's error at once, and the
// lease is released in the background.
func TestReleaseUnderAnEndedContext(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		release := map[string]func(l *lease.Lease) error{
			"lease": func(l *lease.Lease) error { return l.Release(ended) },
			"id":    func(l *lease.Lease) error { return leases.Release(ended, l.LockID()) },
			"late": func(l *lease.Lease) error {
				asked := 0
				d.failing(func(ctx context.Context, c fakedb.Call) error {
					if asked++; isRelease(c) && asked == 1 {
						<-ctx.Done()
						return ctx.Err()
					}
					return nil
				})
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				return l.Release(ctx)
			},
		}
		for name, release := range release {
			l := acquire(t, leases, name, lease.TTL(time.Hour))
			want := context.Canceled
			if name == "late" {
				want = context.DeadlineExceeded
			}
			if err := release(l); !errors.Is(err, want) {
				t.Errorf("%s: %v", name, err)
			}
			synctest.Wait()
			time.Sleep(time.Second)
			if !free(t, leases, name) {
				t.Errorf("%s: the lease is still held", name)
			}
			d.failing(nil)
		}
	})
}

// With [lease.MinHold] also a release in the background keeps the lease from other clients until its minimum time has
// passed.
func TestReleaseUnderAnEndedContextKeepsMinHold(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		l := acquire(t, leases, "k", lease.TTL(time.Hour), lease.MinHold(time.Minute))
		if err := l.Release(ended); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		time.Sleep(time.Minute - time.Second)
		if free(t, leases, "k") {
			t.Error("free too early")
		}
		time.Sleep(time.Second)
		if !free(t, leases, "k") {
			t.Error("still held")
		}
	})
}

// A lease that is being released in the background isn't resumed: the release would end it for its new holder.
func TestResumeWaitsForAReleaseInTheBackground(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		first := acquire(t, leases, "k", lease.Resume("x"))
		d.failing(func(_ context.Context, c fakedb.Call) error {
			if isRelease(c) {
				time.Sleep(time.Second)
			}
			return nil
		})
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := first.Release(ended); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		second := acquire(t, leases, "k", lease.Resume("x"))
		time.Sleep(5 * time.Second)
		if free(t, leases, "k") || second.Token().Value <= first.Token().Value {
			t.Errorf("the lease of %v was resumed as %v, and released", first, second)
		}
		release(t, second)
	})
}

// A release in the background is given up after a while.
func TestReleaseInTheBackgroundGivesUp(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		l := acquire(t, leases, "k", lease.TTL(time.Hour))
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		d.failing(func(context.Context, fakedb.Call) error { return errLost })
		if err := l.Release(ended); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		time.Sleep(6 * time.Second)
		d.Sent()
		time.Sleep(time.Hour)
		if sent := d.Sent(); len(sent) > 0 {
			t.Errorf("after an hour: %v", sent)
		}
	})
}
