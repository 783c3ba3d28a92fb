package tokens

import (
	"context"
	"database/sql"
	"runtime"
	"sync"

	"github.com/sqlfence/sqlfence/internal/hedge"
)

// A coalescer shares statements among concurrent calls for one name. A caller may join a batch only until the batch's
// statement starts, so that each token is higher than all tokens that were returned before its call.
type coalescer struct {
	// take issues n tokens of name, or as many as are left.
	take func(ctx context.Context, name string, n int64) (taking, error)
	db   *sql.DB // the pool of take's connections, which limits the statements; nil if nothing limits them

	mu     sync.Mutex
	byName map[string]*queue // the queues of the names that have a statement under way
}

// A queue has the callers and the statements of one name. coalescer.mu guards its fields.
type queue struct {
	forming *batch // waits for the next statement; may be nil
	served  bool   // a goroutine will send the next statement when its own has ended
	slot    hedge.Slot
}

// A taking is the result of a statement that issued tokens of a name.
type taking struct {
	last, taken int64
	calls       int64 // number of callers that the statement served, including callers of other names
}

// A batch is the callers of one statement.
type batch struct {
	// ctx belongs to no caller. It ends when all callers have gone.
	ctx    context.Context
	cancel context.CancelFunc

	joined int64 // not written after the statement has started
	gone   int64

	underWay *hedge.Statement // nil before it has started; coalescer.mu guards it

	done chan struct{} // closed when the statement has ended and the rest is set
	taking
	err error
}

// issue waits for a token of name until ctx ends. calls is how many calls the statement served.
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

// join adds a caller to the next batch of name, and returns its place in the batch, from 1.
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

// leave removes a caller that stops waiting. The caller's place stays, so a token may be skipped. A batch without
// callers is cancelled.
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

// serve sends the statements of name until no caller waits, or its own statement is late and another goroutine serves
// the name.
func (c *coalescer) serve(name string, q *queue) {
	for b := c.start(name, q); b != nil; b = c.start(name, q) {
		b.taking, b.err = c.take(b.ctx, name, b.joined)
		b.cancel()
		close(b.done)
		if c.end(name, q, b) {
			return
		}
		// Callers that got their tokens often come back at once, and can join the next statement.
		runtime.Gosched()
	}
}

// start closes the forming batch of name and returns it. If there is none, the caller must stop serving the name.
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
	b.underWay = q.slot.Start(&c.mu, c.db, func() { c.overtake(name, q) })
	return b
}

// overtake starts the next statement of name while another one is late.
func (c *coalescer) overtake(name string, q *queue) {
	q.served = q.forming != nil
	if q.served {
		go c.serve(name, q)
	}
}

func (c *coalescer) end(name string, q *queue, b *batch) (wasLate bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wasLate = b.underWay.End()
	if wasLate {
		c.forget(name, q)
	}
	return wasLate
}

func (c *coalescer) forget(name string, q *queue) {
	if !q.served && q.slot.Idle() {
		delete(c.byName, name)
	}
}

func (b *batch) token(name string, place int64) (int64, error) {
	switch {
	case b.err != nil:
		return 0, b.err
	case place > b.taken:
		return 0, errLimit(name, b.last)
	}
	return b.last - b.taken + place, nil
}
