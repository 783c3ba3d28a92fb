package lease_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlfence/sqlfence/internal/test/fakedb"
	"github.com/sqlfence/sqlfence/lease"
)

// Acquire makes as many attempts as the terms allow, and then returns the holder of the lease.
func TestAcquireGivesUp(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		name     string
		terms    []lease.Term
		attempts int
		from, to time.Duration // how long Acquire takes
	}{
		{"no retries", []lease.Term{lease.Retries(0)}, 1, 0, 0},
		{"two retries", []lease.Term{lease.Retries(2)}, 3, 150 * ms, 300 * ms},
		{"back-off", []lease.Term{lease.Retries(3), lease.Backoff(10 * ms)}, 4, 35 * ms, 70 * ms},
		{"default pauses", []lease.Term{lease.Timeout(5 * time.Second)}, 6, 5 * time.Second, 5 * time.Second},
		{"timeout", []lease.Term{lease.Timeout(120 * ms)}, 2, 120 * ms, 120 * ms},
		{"no timeout", []lease.Term{lease.Timeout(0), lease.Retries(8), lease.Backoff(time.Second)}, 9, 16 * time.Second, 33 * time.Second},
		{"wait", []lease.Term{lease.Timeout(time.Second), lease.Interval(400 * ms)}, 3, time.Second, time.Second},
		{"one attempt", []lease.Term{lease.NoWait()}, 1, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			eachDatabase(t, func(t *testing.T, d *database) {
				leases := d.ready(t)
				held := acquire(t, leases, "k", lease.Resume("me"), lease.TTL(time.Hour))
				start := time.Now()
				_, err := leases.Acquire(t.Context(), "k", test.terms...)
				var e *lease.HeldError
				if !errors.As(err, &e) || !errors.Is(err, lease.ErrHeld) || !e.Temporary() {
					t.Fatal(err)
				}
				// The last pause before a limit is cut off, and its length is drawn.
				if e.Key != "k" || e.Holder != "me" || !e.Until.Equal(held.ExpiresAt()) || e.Attempts < test.attempts || e.Attempts > test.attempts+1 {
					t.Errorf("%+v, want %d attempts", e, test.attempts)
				}
				if d := time.Since(start); d < test.from || d > test.to {
					t.Errorf("it took %v, want %v to %v", d, test.from, test.to)
				}
			})
		})
	}
}

func TestAcquireEndsWithItsContext(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		acquire(t, leases, "k", lease.TTL(time.Hour))
		gone := errors.New("gone home")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(gone) })
		start := time.Now()
		if _, err := leases.Acquire(ctx, "k", lease.Timeout(time.Hour)); !errors.Is(err, context.Canceled) || errors.Is(err, lease.ErrHeld) {
			t.Errorf("error %v", err)
		}
		took(t, start, time.Second)
		d.Sent()
		if _, _, err := leases.TryAcquire(ctx, "k"); !errors.Is(err, context.Canceled) || d.count() != 0 {
			t.Errorf("a context that has ended: %v", err)
		}
	})
}

// A waiter tries again at the moment when the other lease ends.
func TestAcquireAtTheExpiry(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		first := acquire(t, leases, "k", lease.TTL(300*time.Millisecond))
		start := time.Now()
		second := acquire(t, leases, "k", lease.Timeout(time.Hour), lease.Interval(time.Minute))
		if d := time.Since(start) - 300*time.Millisecond; d < time.Millisecond || d > 6*time.Millisecond {
			t.Errorf("it took %v longer than the lease lived", d)
		}
		if second.Token().Value != 2 || !errors.Is(first.Err(), lease.ErrLeaseLost) {
			t.Errorf("token %v, the first: %v", second.Token(), first.Err())
		}
	})
}

// Waiters get the lease in the order of their calls, at the moment of its release. Only the first waiter in the queue
// sends attempts.
func TestWaitersStandInLine(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		held := acquire(t, leases, "k", lease.TTL(time.Hour))
		start := time.Now()
		var order []int
		var mu sync.Mutex
		var waiters sync.WaitGroup
		for i := range 5 {
			waiters.Go(func() {
				l, err := leases.Acquire(t.Context(), "k", lease.Timeout(time.Hour), lease.Interval(10*time.Minute))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				time.Sleep(time.Second)
				if err := l.Release(t.Context()); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		d.Sent()
		time.Sleep(time.Minute)
		if n := d.count(); n != 0 {
			t.Errorf("%d statements while nothing happens", n)
		}
		release(t, held)
		waiters.Wait()
		if got := fmt.Sprint(order); got != "[0 1 2 3 4]" {
			t.Errorf("served %s", got)
		}
		took(t, start, time.Minute+5*time.Second)
	})
}

// A waiter that times out before its first attempt returns the queue's last response, or DeadlineExceeded if the queue
// has no response.
func TestTimeoutInLine(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		acquire(t, leases, "k", lease.Resume("me"), lease.TTL(time.Hour))
		var waiters sync.WaitGroup
		waiters.Go(func() {
			_, _ = leases.Acquire(t.Context(), "k", lease.Timeout(time.Minute), lease.Interval(time.Minute))
		})
		synctest.Wait()
		var e *lease.HeldError
		if _, err := leases.Acquire(t.Context(), "k", lease.Timeout(time.Second)); !errors.As(err, &e) || e.Attempts != 0 || e.Holder != "me" {
			t.Errorf("%v, %+v", err, e)
		}
		waiters.Wait()

		d.failing(func(ctx context.Context, _ fakedb.Call) error { <-ctx.Done(); return ctx.Err() })
		start := time.Now()
		_, err := leases.Acquire(t.Context(), "other", lease.Timeout(time.Second))
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, lease.ErrHeld) {
			t.Errorf("no answer: %v", err)
		}
		took(t, start, time.Second)
		waiters.Go(func() {
			_, err := leases.Acquire(t.Context(), "other", lease.Timeout(50*time.Millisecond))
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the first: %v", err)
			}
		})
		synctest.Wait()
		if _, err := leases.Acquire(t.Context(), "other", lease.Timeout(20*time.Millisecond)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the second: %v", err)
		}
		waiters.Wait()
		d.failing(nil)
	})
}

// A caller whose last attempt isn't answered in time returns the answer before it.
func TestTimeoutWhileAsking(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		acquire(t, leases, "k", lease.Resume("me"), lease.TTL(time.Hour))
		attempts := 0
		d.failing(func(ctx context.Context, c fakedb.Call) error {
			if isAcquire(c) {
				if attempts++; attempts > 1 {
					<-ctx.Done()
					return ctx.Err()
				}
			}
			return nil
		})
		start := time.Now()
		var e *lease.HeldError
		if _, err := leases.Acquire(t.Context(), "k", lease.Timeout(time.Second)); !errors.As(err, &e) || e.Holder != "me" || e.Attempts != 2 {
			t.Errorf("%v", err)
		}
		took(t, start, time.Second)
	})
}

// An attempt without a response doesn't delay the next waiter for long.
func TestNextInLineAsksAnotherConnection(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		stuck := make(chan struct{})
		attempts := 0
		d.failing(func(_ context.Context, c fakedb.Call) error {
			if isAcquire(c) {
				if attempts++; attempts == 1 {
					<-stuck
					return stateError("42501")
				}
			}
			return nil
		})
		var first sync.WaitGroup
		first.Go(func() {
			if _, err := leases.Acquire(t.Context(), "k"); err == nil {
				t.Error("the first was answered")
			}
		})
		synctest.Wait()
		start := time.Now()
		l := acquire(t, leases, "k")
		took(t, start, 100*time.Millisecond)
		close(stuck)
		first.Wait()
		release(t, l)
	})
}

func TestResume(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		me := lease.Resume("me")
		first := acquire(t, leases, "k", me, lease.TTL(time.Minute))
		time.Sleep(10 * time.Second)
		again := acquire(t, leases, "k", me, lease.TTL(time.Hour))
		if again.LockID() != first.LockID() || again.Token() != first.Token() || !again.ExpiresAt().Equal(first.ExpiresAt()) || !again.AcquiredAt().Equal(first.AcquiredAt()) {
			t.Errorf("asked again: %v until %v, want %v until %v", again.Token(), again.ExpiresAt(), first.Token(), first.ExpiresAt())
		}
		if _, ok, err := leases.TryAcquire(t.Context(), "k", lease.Resume("you"), lease.Refresh()); ok || err != nil {
			t.Errorf("another owner: %v, %v", ok, err)
		}
		refreshed := acquire(t, leases, "k", me, lease.TTL(time.Hour), lease.Refresh())
		if want := time.Now().Add(time.Hour); refreshed.LockID() != first.LockID() || !refreshed.ExpiresAt().Equal(want) {
			t.Errorf("refreshed: until %v, want %v", refreshed.ExpiresAt(), want)
		}
		time.Sleep(2 * time.Minute)
		if first.Err() == nil || refreshed.Err() != nil {
			t.Errorf("after the first ttl: %v, refreshed %v", first.Err(), refreshed.Err())
		}

		// The owner's own attempt doesn't queue after callers that wait for the owner's release.
		var waiter sync.WaitGroup
		waiter.Go(func() {
			l, err := leases.Acquire(t.Context(), "k", lease.Resume("you"), lease.Timeout(time.Hour), lease.Interval(time.Minute))
			if err != nil {
				t.Error(err)
				return
			}
			release(t, l)
		})
		synctest.Wait()
		start := time.Now()
		if l := acquire(t, leases, "k", me); l.LockID() != first.LockID() {
			t.Error("the owner got another lease")
		}
		took(t, start, 0)
		release(t, refreshed)
		waiter.Wait()
	})
}

func TestDefaults(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t, lease.WithDefaults(lease.TTL(time.Minute), lease.Retries(0)), lease.WithDefaults(lease.Resume("me")))
		l := acquire(t, leases, "k")
		if got := l.ExpiresAt().Sub(l.AcquiredAt()); got != time.Minute {
			t.Errorf("a ttl of %v", got)
		}
		if info, ok, err := leases.Lookup(t.Context(), "k"); err != nil || !ok || info.Holder != "me" {
			t.Errorf("%v, %v, %v", info, ok, err)
		}
		if l := acquire(t, leases, "other", lease.TTL(time.Hour)); l.ExpiresAt().Sub(l.AcquiredAt()) != time.Hour {
			t.Error("the call's own term doesn't win")
		}
	})
}

// A time limit that passes before any response is reported as such.
func TestNoAnswerInTime(t *testing.T) {
	onPostgres(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		d.db.SetMaxOpenConns(2)
		for range 2 { // all connections are in use
			conn, err := d.db.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
		}
		for want, terms := range map[string][]lease.Term{
			"no answer from the database": {lease.Timeout(time.Second)},
			"no answer from the database: a connection for the session of ephemeral leases": {lease.Ephemeral(), lease.Timeout(time.Second)},
		} {
			_, err := leases.Acquire(t.Context(), "k", terms...)
			_, _, tryErr := leases.TryAcquire(t.Context(), "k", terms...)
			for _, err := range []error{err, tryErr} {
				if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want %s", err, want)
				}
			}
		}
	})
}

// Without a limiting term, Acquire waits even for a lease that ends much later.
func TestAcquireWaitsUntilItsContextEnds(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		acquire(t, leases, "k", lease.TTL(time.Hour))
		called := false
		if err := leases.Do(t.Context(), "k", func(context.Context) error { called = true; return nil }); err != nil || !called {
			t.Error(err)
		}
		acquire(t, leases, "k", lease.TTL(time.Hour))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := leases.Do(ctx, "k", nil); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, lease.ErrHeld) {
			t.Error(err)
		}
		if err := leases.Do(t.Context(), "k", nil, lease.NoWait()); !errors.Is(err, lease.ErrHeld) {
			t.Error(err)
		}
	})
}

// A caller with the same holder's name has no right to the lease, and a caller that resumes by this name has none
// either.
func TestHolderGivesNoRight(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		for key, term := range map[string]lease.Term{"named": lease.Holder("web"), "default": lease.TTL(time.Hour)} {
			held := acquire(t, leases, key, term)
			name := held.String()
			info, ok, err := leases.Lookup(t.Context(), key)
			if err != nil || !ok || key == "named" && info.Holder != "web" || key == "default" && !strings.Contains(info.Holder, "/") {
				t.Errorf("%s: %+v, %v", name, info, err)
			}
			for _, other := range []lease.Term{lease.Holder("web"), term, lease.Resume("web"), lease.Resume(info.Holder)} {
				var e *lease.HeldError
				if _, err := leases.Acquire(t.Context(), key, other, lease.NoWait()); !errors.As(err, &e) || e.Holder != info.Holder {
					t.Errorf("%s: %v", key, err)
				}
				if _, ok, err := leases.TryAcquire(t.Context(), key, other); ok || err != nil {
					t.Errorf("%s: %v, %v", key, ok, err)
				}
			}
		}
	})
}
