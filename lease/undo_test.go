package lease_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlfence/sqlfence/internal/test/fakedb"
	"github.com/sqlfence/sqlfence/lease"
)

// undos counts the statements since the last look that undo an attempt.
func undos(d *database) (n int) {
	for _, c := range d.Sent() {
		if isUndo(c) {
			n++
		}
	}
	return n
}

// A caller whose context ends doesn't wait for the database. If its statement takes a lease later, the lease is
// released.
func TestAttemptsLeftAreUndone(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		slow := make(chan struct{})
		d.failing(func(ctx context.Context, c fakedb.Call) error {
			if isAcquire(c) {
				<-slow
				if ctx.Err() != nil {
					t.Error("the statement sees the end of the caller's context")
				}
			}
			return nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() { _, err := leases.Acquire(ctx, "k"); left <- err }()
		synctest.Wait()
		cancel()
		start := time.Now()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("Acquire: %v", err)
		}
		took(t, start, 0)
		d.Sent()
		close(slow)
		synctest.Wait()
		if n := undos(d); n != 1 || !free(t, leases, "k") {
			t.Errorf("undone %d times, free: %v", n, free(t, leases, "k"))
		}
		if l := acquire(t, leases, "k"); l.Token().Value != 2 {
			t.Errorf("the next token is %v", l.Token())
		}
	})
}

// A statement without a response is given up after a while. It is undone repeatedly, because it may still be on its way
// to the server.
func TestAttemptsThatArriveLateAreUndone(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		var onItsWay fakedb.Call
		d.failing(func(ctx context.Context, c fakedb.Call) error {
			if isAcquire(c) {
				onItsWay = c
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		})
		start := time.Now()
		_, _, err := leases.TryAcquire(t.Context(), "k", lease.Timeout(time.Second), lease.TTL(time.Hour))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("TryAcquire: %v", err)
		}
		took(t, start, time.Second)
		time.Sleep(5 * time.Second)
		want := 0 // SQLite is in the process: nothing arrives late
		if d.server != nil {
			want = 6 // in the last three seconds
		}
		if n := undos(d); n != want {
			t.Errorf("undone %d times, want %d", n, want)
		}
		d.failing(nil)
		if d.server != nil {
			if _, err := d.handle(t.Context(), onItsWay); err != nil || free(t, leases, "k") {
				t.Errorf("the late statement took nothing: %v", err)
			}
			time.Sleep(5 * time.Second)
		}
		if !free(t, leases, "k") {
			t.Error("it is left behind")
		}
		d.Sent()
		time.Sleep(2 * time.Hour)
		if n := undos(d); n > 12 {
			t.Errorf("%d more tries in an hour", n)
		}
		time.Sleep(time.Hour)
		if n := undos(d); n != 0 {
			t.Errorf("%d more tries behind the end of what it may have taken", n)
		}
	})
}

// An attempt that took nothing isn't undone.
func TestNothingToUndo(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		acquire(t, leases, "held")
		for name, answer := range map[string]error{"held": nil, "free": stateError("42703")} {
			slow := make(chan struct{})
			d.failing(func(_ context.Context, c fakedb.Call) error {
				if isAcquire(c) {
					<-slow
					return answer
				}
				return nil
			})
			_, _, err := leases.TryAcquire(t.Context(), name, lease.Timeout(time.Second))
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", name, err)
			}
			close(slow)
			synctest.Wait()
			if n := undos(d); n != 0 {
				t.Errorf("%s: undone %d times", name, n)
			}
		}
	})
}

// After an error that may hide a commit, the lease that the attempt may have taken is released. This is repeated until
// it succeeds.
func TestUnknownOutcomeIsUndone(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		lost, undone := false, atomic.Int32{} // atomic, as undoing may go on after the test
		d.losing(func(c fakedb.Call) error {
			if !lost && (d.server != nil && isAcquire(c) || c.Kind == fakedb.Commit) {
				lost = true
				return errLost
			}
			return nil
		})
		d.failing(func(_ context.Context, c fakedb.Call) error {
			if isUndo(c) {
				if undone.Add(1) < 4 {
					return errLost
				}
			}
			return nil
		})
		if _, _, err := leases.TryAcquire(t.Context(), "k"); !errors.Is(err, errLost) {
			t.Errorf("TryAcquire: %v", err)
		}
		if free(t, leases, "k") {
			t.Fatal("it wasn't taken")
		}
		start := time.Now()
		l := acquire(t, leases, "k", lease.Timeout(time.Hour), lease.Interval(time.Minute)) // it is woken
		took(t, start, 350*time.Millisecond)                                                // 50, 100 and 200 ms
		if n := undone.Load(); n != 4 || l.Token().Value != 2 {
			t.Errorf("undone %d times, then the token %v", n, l.Token())
		}
	})
}

// A lease that can't be undone ends with its TTL, and a debug message reports the failure.
func TestUndoGivesUp(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		d.failing(func(context.Context, fakedb.Call) error { return errLost })
		if d.server == nil {
			d.failing(func(_ context.Context, c fakedb.Call) error {
				if c.Kind == fakedb.Commit || isUndo(c) {
					return errLost
				}
				return nil
			})
		}
		if _, _, err := leases.TryAcquire(t.Context(), "k", lease.TTL(10*time.Second)); !errors.Is(err, errLost) {
			t.Errorf("TryAcquire: %v", err)
		}
		time.Sleep(11 * time.Second)
		if got := d.logged.String(); !strings.Contains(got, "level=DEBUG") || !strings.Contains(got, "wasn't undone") {
			t.Errorf("logged %s", got)
		}
		d.Sent()
		time.Sleep(time.Hour)
		if n := undos(d); n != 0 {
			t.Errorf("%d more tries", n)
		}
		d.failing(nil)
	})
}

// Once its owner has closed the database, nothing is undone, nor logged.
func TestUndoEndsWithTheDatabase(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		d.failing(func(_ context.Context, c fakedb.Call) error {
			if isUndo(c) || isAcquire(c) && d.server != nil || c.Kind == fakedb.Commit {
				return errLost
			}
			return nil
		})
		if _, _, err := leases.TryAcquire(t.Context(), "k"); !errors.Is(err, errLost) {
			t.Errorf("TryAcquire: %v", err)
		}
		synctest.Wait()
		d.db.Close()
		time.Sleep(time.Hour)
		if got := d.logged.String(); got != "" {
			t.Errorf("logged %s", got)
		}
		if _, _, err := leases.TryAcquire(t.Context(), "k"); err == nil {
			t.Error("acquired by a closed database")
		}
	})
}
