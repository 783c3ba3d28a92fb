package tokens

import (
	"context"
	"database/sql"
	"runtime"
	"sync"

	"github.com/sqlfence/sqlfence/internal/hedge"
)

// A coalescer lets concurrent calls for one name share a statement. Each name has a
// queue of its own; names don't wait for each other.
//
// The rule that keeps real-time order: a caller may join a batch only until its
// statement starts. So a statement that gives a caller its token was sent after
// the call had begun, and finds every token that was given out before. That holds
// also for a statement that is sent beside another one, which is late.
type coalescer struct {
	// take takes n tokens of name, or as many as there are left.
	take func(ctx context.Context, name string, n int64) (taking, error)
	db   *sql.DB // take uses its connections; nil for any number of them

	mu     sync.Mutex
	byName map[string]*queue // of the names that have a statement under way
}

// A queue is the callers and the statements of one name. coalescer.mu guards its fields.
type queue struct {
	forming *batch // the callers that wait for the next statement; nil if there are none
	served  bool   // a goroutine will send the next statement when its own has ended
	lane    hedge.Lane
}

// A taking is what a statement has taken for a name.
type taking struct {
	last, taken int64
	calls       int64 // how many it has served, also of other names
}

// A batch is the callers that share one statement.
type batch struct {
	// ctx belongs to no caller; it ends when all of them have gone.
	ctx    context.Context
	cancel context.CancelFunc

	joined int64 // not written after the statement has started
	gone   int64

	underWay *hedge.Statement // nil before it has started; coalescer.mu guards it

	done chan struct{} // closed when the statement has ended and the rest is set
	taking
	err error
}

// issue waits for a token of name, or for the end of ctx. It returns how many calls the statement has served.
func (c *coalescer) issue(ctx context.Context, name string) (value, calls int64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, 0, err
	}
	b, place := c.join(name)
	select {
	case <-b.done:
		value, err = b.token(name, place)
		return value, b.calls, err
	case <-ctx.Done():
		c.leave(name, b)
		return 0, 0, ctx.Err()
	}
}

// join adds a caller to the batch that forms for name, and returns its place in
// it, from 1. Without a goroutine that serves the name it starts one.
func (c *coalescer) join(name string) (*batch, int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.byName[name]
	if q == nil {
		q = new(queue)
		if c.byName == nil {
			c.byName = make(map[string]*queue)
		}
		c.byName[name] = q
	}
	b := q.forming
	if b == nil {
		b = &batch{done: make(chan struct{})}
		b.ctx, b.cancel = context.WithCancel(context.Background())
		q.forming = b
	}
	if !q.served {
		q.served = true
		go c.serve(name, q)
	}
	b.joined++
	return b, b.joined
}

// leave takes a caller out that doesn't wait any more. Its place stays: a token may be
// skipped. A batch that all callers have left is neither sent nor joined.
func (c *coalescer) leave(name string, b *batch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b.gone++
	if b.gone < b.joined {
		return
	}
	b.cancel()
	if q := c.byName[name]; q != nil && q.forming == b {
		q.forming = nil
	}
}

// serve sends one statement after the other until no one waits for name, or its own
// is late, and another goroutine serves the name.
func (c *coalescer) serve(name string, q *queue) {
	for b := c.start(name, q); b != nil; b = c.start(name, q) {
		b.taking, b.err = c.take(b.ctx, name, b.joined)
		b.cancel()
		close(b.done)
		if c.end(name, q, b) {
			return
		}
		// Those who got their tokens often come back at once: let them join the
		// next statement rather than the one after it.
		runtime.Gosched()
	}
}

// start closes the forming batch of name to newcomers and returns it. If there is
// none it returns nil, and the caller must stop serving the name.
func (c *coalescer) start(name string, q *queue) *batch {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := q.forming
	q.forming = nil
	if b == nil {
		q.served = false
		c.forget(name, q)
		return nil
	}
	b.underWay = q.lane.Start(&c.mu, c.db, func() { c.overtake(name, q) })
	return b
}

// overtake lets the next statement of name start although one is late.
func (c *coalescer) overtake(name string, q *queue) {
	q.served = q.forming != nil
	if q.served {
		go c.serve(name, q)
	}
}

// end marks the statement of b as ended, and reports whether it was late.
func (c *coalescer) end(name string, q *queue, b *batch) (wasLate bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wasLate = b.underWay.End()
	if wasLate {
		c.forget(name, q)
	}
	return wasLate
}

// forget drops the queue of a name without a statement under way.
func (c *coalescer) forget(name string, q *queue) {
	if !q.served && q.lane.Idle() {
		delete(c.byName, name)
	}
}

// token returns the token of the caller at place, once b is done.
func (b *batch) token(name string, place int64) (int64, error) {
	switch {
	case b.err != nil:
		return 0, b.err
	case place > b.taken:
		return 0, errLimit(name, b.last)
	}
	return b.last - b.taken + place, nil
}
