package lease

import (
	"context"
	"database/sql"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlfence/sqlfence/internal/hedge"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

// first reports whether a waiter is the first in its queue.
func first(w *waiter) bool {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	select {
	case <-w.first:
		return true
	default:
		return w.await(ended)
	}
}

// Waiters get their turn in order, also when a waiter leaves the queue.
func TestQueueKeepsTheOrderOfWaiters(t *testing.T) {
	var qs queues
	a, b, c := qs.join("k"), qs.join("k"), qs.join("k")
	other := qs.join("other")
	if !first(a) || first(b) || first(c) || !first(other) {
		t.Fatal("the first to come is not the first")
	}
	b.leave()
	a.leave()
	if !first(c) {
		t.Error("nobody is first")
	}
	qs.wake("k")
	qs.wake("k")
	if len(c.signal) != 1 || len(other.signal) != 0 {
		t.Errorf("woken: %d, %d", len(c.signal), len(other.signal))
	}
	qs.wake("")
	if len(other.signal) != 1 {
		t.Error("not all were woken")
	}
	c.leave()
	if qs.busy("k") || !qs.busy("other") {
		t.Error("busy is wrong")
	}
	qs.wake("k")
}

// A waiter that gets no response lets the next waiter try, and rejoins the queue after that waiter.
func TestQueueStepsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var qs queues
		a, b, c := qs.join("k"), qs.join("k"), qs.join("k")
		a.begin()
		time.Sleep(hedge.Timeout - 1)
		synctest.Wait()
		if first(b) {
			t.Fatal("the second may ask too early")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if !first(b) || first(c) {
			t.Fatal("the second may not ask, or the third may")
		}
		b.begin()
		time.Sleep(2*hedge.Timeout - 1)
		synctest.Wait()
		if first(c) {
			t.Fatal("the third may ask as early as the second")
		}
		held := &outcome{live: true, holder: "me"}
		held.left.Int64, held.left.Valid = time.Hour.Microseconds(), true
		b.end(held)
		if c.lastResponse() != held {
			t.Error("the third doesn't know what the second was told")
		}
		a.end(nil)
		if !first(b) || first(a) || first(c) {
			t.Error("the late one is not behind the one who asks")
		}
		b.leave()
		if !first(a) || first(c) {
			t.Error("the late one is not before those who came later")
		}
		qs.wake("k")
		if c.lastResponse() != nil {
			t.Error("what was said before a release still counts")
		}
		a.begin()
		time.Sleep(time.Hour)
		synctest.Wait()
		if !first(c) {
			t.Error("nobody is first")
		}
		a.leave() // without an answer
		c.leave()
		if qs.busy("k") {
			t.Error("the queue is still there")
		}
	})
}

// Only a few waiters step out of the queue, and with a small pool hardly any: the others wait.
func TestQueueIsNotFlooded(t *testing.T) {
	for pool, want := range map[int]int{0: 4, 100: 4, 8: 3, 4: 2, 3: 1} {
		synctest.Test(t, func(t *testing.T) {
			db := sql.OpenDB(new(fakedb.DB))
			defer db.Close()
			db.SetMaxOpenConns(pool)
			qs := queues{db: db}
			var asking atomic.Int32
			ctx, cancel := context.WithCancel(t.Context())
			var waiters sync.WaitGroup
			for range 10 {
				w := qs.join("k")
				waiters.Go(func() {
					if w.await(ctx) {
						asking.Add(1)
						w.begin()
						<-ctx.Done() // the database doesn't respond
						w.end(nil)
					}
					w.leave()
				})
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			if got := int(asking.Load()); got != want {
				t.Errorf("a pool of %d: %d ask at once, want %d", pool, got, want)
			}
			cancel()
			waiters.Wait()
			if qs.busy("k") {
				t.Error("the queue is still there")
			}
		})
	}
}

// Waiters use another waiter's answer only until the reported lease ends.
func TestQueueForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var qs queues
		a, b := qs.join("k"), qs.join("k")
		won := &outcome{won: &grant{Info: Info{Holder: "me", ExpiresAt: time.Now().Add(time.Minute)}, left: time.Minute}}
		a.begin()
		a.end(won)
		a.leave()
		if o := b.lastResponse(); o == nil || o.holder != "me" || o.until.Int64 != won.won.ExpiresAt.UnixMicro() {
			t.Errorf("heard %+v of the one before", o)
		}
		time.Sleep(time.Minute + 1)
		if o := b.lastResponse(); o != nil {
			t.Errorf("heard %+v of a lease that has ended", o)
		}
		b.leave()
	})
}

// A waiter that has stepped out and gets a late response learns of a release before this response. It also does if the
// queue was empty at the release, or if another waiter has left without an attempt.
func TestQueueWakesWhoSteppedOut(t *testing.T) {
	for name, others := range map[string]bool{"alone": false, "behind another": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var qs queues
				a := qs.join("k")
				a.begin()
				time.Sleep(2 * hedge.Timeout)
				var b *waiter
				if others {
					b = qs.join("k")
				}
				if !others {
					qs.wake("k")
				}
				a.end(&outcome{live: true})
				if others {
					qs.wake("k")
					if len(a.signal) != 0 {
						t.Error("woken behind another")
					}
					b.leave()
				}
				if !first(a) || len(a.signal) != 1 {
					t.Errorf("first: %v; woken: %d", first(a), len(a.signal))
				}
				a.leave()
			})
		})
	}
}
