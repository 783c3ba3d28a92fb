package lease_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence/internal/test/fakedb"
	"github.com/sqlfence/sqlfence/lease"
)

// resends has the database execute the next statement that wanted chooses, call then, and break the connection. So
// package sql, or the lease, sends the statement again.
func (d *database) resends(wanted func(fakedb.Call) bool, then func()) (lost *bool) {
	lost = new(bool)
	d.losing(func(c fakedb.Call) error {
		if *lost || !wanted(c) {
			return nil
		}
		*lost = true
		if then != nil {
			then()
		}
		return driver.ErrBadConn
	})
	return lost
}

// takes reports whether c takes a lease for good.
func (d *database) takes(c fakedb.Call) bool {
	return d.server != nil && isAcquire(c) || c.Kind == fakedb.Commit
}

// If the response to an attempt is lost, the attempt is sent again, and returns the lease that the lost attempt has
// taken.
func TestAcquireSentAgain(t *testing.T) {
	for name, terms := range map[string][]lease.Term{
		"plain":   nil,
		"owner":   {lease.Resume("me")},
		"refresh": {lease.Resume("me"), lease.Refresh()},
	} {
		t.Run(name, func(t *testing.T) {
			eachDatabase(t, func(t *testing.T, d *database) {
				leases := d.ready(t)
				lost := d.resends(d.takes, nil)
				l, ok, err := leases.TryAcquire(t.Context(), "k", terms...)
				if !ok || err != nil {
					t.Fatalf("TryAcquire: %v, %v", ok, err)
				}
				info, live, err := leases.LookupID(t.Context(), l.LockID())
				if !*lost || !live || err != nil || l.Token().Value != 1 || info.Token != l.Token() || !info.ExpiresAt.Equal(l.ExpiresAt()) {
					t.Errorf("lost: %v; the lease is %v, the database says %v, %v, %v", *lost, l.Token(), info, live, err)
				}
				if another, ok, err := leases.TryAcquire(t.Context(), "k"); ok || err != nil {
					t.Errorf("another got it: %v, %v", another, err)
				}
				if n := undos(d); n != 0 {
					t.Errorf("undone %d times", n)
				}
				time.Sleep(lease.DefaultTTL - 1)
				if l.Err() != nil {
					t.Errorf("it ended early: %v", l.Err())
				}
			})
		})
	}
}

// If an attempt's response is lost, and it can't be sent again, the lease that it may have taken is released.
func TestAcquireIsUndoneIfItCannotBeSentAgain(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		var down atomic.Bool
		d.failing(func(_ context.Context, c fakedb.Call) error {
			if down.Load() && !isUndo(c) {
				return errLost
			}
			return nil
		})
		d.resends(d.takes, func() { down.Store(true) })
		if _, ok, err := leases.TryAcquire(t.Context(), "k"); ok || !errors.Is(err, errLost) {
			t.Errorf("TryAcquire: %v, %v", ok, err)
		}
		time.Sleep(time.Second)
		down.Store(false)
		if n := undos(d); n != 5 || !free(t, leases, "k") { // at once, and after 50, 100, 200 and 400 ms
			t.Errorf("undone %d times", n)
		}
	})
}

// A release that is sent again, because its response was lost, succeeds. It doesn't report a lost lease, because the
// lease covered the work to its end.
func TestReleaseSentAgain(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		for name, release := range map[string]func(l *lease.Lease) error{
			"Lease.Release":  func(l *lease.Lease) error { return l.Release(t.Context()) },
			"Leases.Release": func(l *lease.Lease) error { return leases.Release(t.Context(), l.LockID()) },
		} {
			l := acquire(t, leases, "k")
			lost := d.resends(isRelease, nil)
			if err := release(l); err != nil || !*lost || !free(t, leases, "k") {
				t.Errorf("%s: %v", name, err)
			}
			if err := leases.Release(t.Context(), l.LockID()); !errors.Is(err, lease.ErrNotHeld) {
				t.Errorf("%s, a second time: %v", name, err)
			}
		}
		lost := d.resends(isRelease, nil)
		if err := leases.Do(t.Context(), "k", func(context.Context) error { return nil }); err != nil || !*lost {
			t.Errorf("Do: %v", err)
		}
	})
}

// Another process may have taken the lease before the release is sent again. Then the cause of the lease's end is
// unknown, and the lease isn't reported as lost.
func TestReleaseSentAgainAfterTheNext(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		next := func() {
			if _, ok, err := leases.TryAcquire(t.Context(), "k", lease.TTL(time.Second)); !ok || err != nil {
				t.Errorf("the next: %v, %v", ok, err)
			}
		}
		lost := d.resends(isRelease, next)
		if err := leases.Do(t.Context(), "k", func(context.Context) error { return nil }); err != nil || !*lost {
			t.Errorf("Do: %v", err)
		}
		if got := d.logged.String(); !strings.Contains(got, "the answer to a release was lost") {
			t.Errorf("logged %s", got)
		}
		time.Sleep(time.Second)
		l := acquire(t, leases, "k")
		d.resends(isRelease, next)
		if err := l.Release(t.Context()); err == nil || errors.Is(err, lease.ErrNotHeld) || errors.Is(err, lease.ErrLeaseLost) {
			t.Errorf("Release: %v", err)
		}
	})
}

// The release of an expired lease reports the expiry, even if the release is sent twice.
func TestReleaseSentAgainOfAnExpiredLease(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		l := acquire(t, leases, "k", lease.TTL(time.Second))
		time.Sleep(time.Second)
		lost := d.resends(isRelease, nil)
		var e *lease.NotHeldError
		if err := leases.Release(t.Context(), l.LockID()); !errors.As(err, &e) || !e.Expired || !*lost {
			t.Errorf("Release: %v", err)
		}
	})
}

func TestExtendSentAgain(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		l := acquire(t, leases, "k", lease.TTL(time.Second))
		lost := d.resends(isExtend, nil)
		if err := l.Extend(t.Context(), time.Minute); err != nil || !*lost {
			t.Fatalf("Extend: %v", err)
		}
		if info, ok, err := leases.Lookup(t.Context(), "k"); err != nil || !ok || !info.ExpiresAt.Equal(l.ExpiresAt()) {
			t.Errorf("the database says %v, %v, %v; the lease %v", info, ok, err, l.ExpiresAt())
		}
		time.Sleep(time.Minute - 1)
		if l.Err() != nil || free(t, leases, "k") {
			t.Errorf("extended, but: %v", l.Err())
		}
	})
}

// The server may return an extension's or a release's row, and then fail with a serialization failure. If another
// holder has the lease by the second attempt, the row of the first one doesn't count.
func TestResultThatWasRolledBackDoesNotCount(t *testing.T) {
	onPostgres(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		for name, test := range map[string]struct {
			is func(fakedb.Call) bool
			do func(id string) error
		}{
			"extend":  {isExtend, func(id string) error { _, err := leases.Extend(t.Context(), id, time.Minute); return err }},
			"release": {isRelease, func(id string) error { return leases.Release(t.Context(), id) }},
		} {
			id := acquire(t, leases, name, lease.TTL(time.Second)).LockID()
			handle, sent := d.handle, 0
			d.handle = func(ctx context.Context, c fakedb.Call) (fakedb.Response, error) {
				if !test.is(c) {
					return handle(ctx, c)
				}
				if sent++; sent > 1 {
					return fakedb.Response{}, nil
				}
				answer, err := handle(ctx, c)
				answer.RowsErr = stateError("40001")
				return answer, err
			}
			if err := test.do(id); !errors.Is(err, lease.ErrNotHeld) || sent < 2 {
				t.Errorf("%s, sent %d times: %v, want ErrNotHeld", name, sent, err)
			}
			d.handle = handle
		}
	})
}
