package lease

import (
	"context"
	"database/sql"
	"slices"
	"sync"
	"time"

	"github.com/sqlfence/sqlfence/internal/hedge"
)

// queues are the waiters of this process, with a queue for each key. Only the first in a queue makes attempts, so the
// database's load grows with the number of processes, not of waiters. If an attempt gets no answer in time (see package
// hedge), its waiter leaves the queue until the answer comes, so that the next waiter can try.
type queues struct {
	db *sql.DB // the pool of the attempts' connections, which limits their number; nil if nothing limits it

	mu    sync.Mutex
	byKey map[string]*queue
}

// queues.mu guards the fields of a queue.
type queue struct {
	waiters []*waiter
	slot    hedge.Slot
	wakes   int      // number of events after which another attempt was worthwhile
	last    *outcome // the last outcome in which another holder had the lease; nil if it is no longer valid
	until   time.Time
}

// A waiter is one call of Acquire in a queue. queues.mu guards the fields from queue on.
type waiter struct {
	queues *queues
	key    string
	signal chan struct{} // holds a value when another attempt is worthwhile

	queue   *queue
	first   chan struct{}    // closed when the waiter is the first of the queue
	attempt *hedge.Statement // the statement of the waiter's attempt, while the attempt runs
	out     bool             // the waiter has left the queue, because its attempt is late
	wakes   int              // the queue's wakes when the waiter's attempt began
	paused  bool             // the waiter has tried, and another holder had the lease
}

func (qs *queues) busy(key string) bool {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	return qs.byKey[key] != nil
}

// join adds a waiter to the end of a queue. It needs a call of leave.
func (qs *queues) join(key string) *waiter {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := qs.byKey[key]
	if q == nil {
		q = new(queue)
		if qs.byKey == nil {
			qs.byKey = make(map[string]*queue)
		}
		qs.byKey[key] = q
	}
	w := &waiter{queues: qs, key: key, queue: q, signal: make(chan struct{}, 1)}
	w.enter(len(q.waiters))
	return w
}

func (w *waiter) leave() {
	w.queues.mu.Lock()
	defer w.queues.mu.Unlock()
	if w.out {
		w.attempt.End()
	} else {
		w.exit()
	}
	if len(w.queue.waiters) == 0 && w.queue.slot.Idle() {
		delete(w.queues.byKey, w.key)
	}
}

// await waits until it is the first; false if ctx has ended.
func (w *waiter) await(ctx context.Context) bool {
	w.queues.mu.Lock()
	first := w.first
	w.queues.mu.Unlock()
	select {
	case <-first:
		return true
	case <-ctx.Done():
		return false
	}
}

// begin records that the first makes an attempt. It needs a call of end.
func (w *waiter) begin() {
	w.queues.mu.Lock()
	defer w.queues.mu.Unlock()
	w.wakes = w.queue.wakes
	w.attempt = w.queue.slot.Start(&w.queues.mu, w.queues.db, func() {
		w.exit()
		w.out = true
	})
}

// end records the end of the attempt; o is nil without an answer. A waiter that had left the queue returns to the
// second place.
func (w *waiter) end(o *outcome) {
	w.queues.mu.Lock()
	defer w.queues.mu.Unlock()
	if w.attempt.End() {
		w.out = false
		w.enter(min(1, len(w.queue.waiters)))
		if w.queue.wakes > w.wakes { // the outcome is older than the last wake
			w.wake()
		}
	}
	w.paused = o != nil && o.won == nil
	if held := o.held(); held != nil {
		w.queue.last = held
		w.queue.until = time.Now().Add(time.Duration(held.left.Int64) * time.Microsecond)
	}
}

// lastResponse returns the last outcome of any waiter in the queue that shows the lease's holder. It returns nil if
// that lease has since ended, or was released in this process.
func (w *waiter) lastResponse() *outcome {
	w.queues.mu.Lock()
	defer w.queues.mu.Unlock()
	if time.Now().After(w.queue.until) {
		return nil
	}
	return w.queue.last
}

func (w *waiter) enter(at int) {
	w.queue.waiters = slices.Insert(w.queue.waiters, at, w)
	w.first = make(chan struct{})
	if at == 0 {
		close(w.first)
	}
}

func (w *waiter) exit() {
	q := w.queue
	wasFirst := q.waiters[0] == w
	q.waiters = slices.DeleteFunc(q.waiters, func(other *waiter) bool { return other == w })
	if wasFirst && len(q.waiters) > 0 {
		next := q.waiters[0]
		close(next.first)
		if next.paused && len(w.signal) > 0 { // else it asks now anyway
			next.wake()
		}
	}
}

// wake makes the first in the queue of key try again; an empty key means all queues.
func (qs *queues) wake(key string) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if key != "" {
		qs.byKey[key].wake()
		return
	}
	for _, q := range qs.byKey {
		q.wake()
	}
}

func (q *queue) wake() {
	if q == nil {
		return
	}
	q.last = nil
	q.wakes++
	if len(q.waiters) > 0 {
		q.waiters[0].wake()
	}
}

func (w *waiter) wake() {
	select {
	case w.signal <- struct{}{}:
	default: // the last signal hasn't been seen yet
	}
}
