// Package share has concurrent calls share the statements that they send.
package share

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Batcher lets concurrent calls share statements, and with them round trips, commits and
// writes to the disk. As long as few statements are under way a call sends its own at
// once. Further calls wait until one of those has ended, and then share one.
//
// A batch leaves to its members what it can't settle without waiting. Each then sends a statement
// of its own: so no member waits for another's lock or fails by another's error.
//
// Width, Send and Left are set before its first use; then it is safe for concurrent use.
type Batcher[T any] struct {
	Width int // how many statements are under way before the next calls share one
	// Send sends one statement for all members, and sets what it has settled.
	Send func(ctx context.Context, members []*Member[T])
	// Left is called for the members that had gone before their batch ended, if there are any; it may be nil.
	Left func(gone []*Member[T])

	off atomic.Bool

	mu       sync.Mutex
	underWay int
	forming  []*Member[T]
	keys     map[string]bool // of forming
}

const (
	// size is how many calls a statement serves at most.
	size = 64
	// patience is how long a statement may take before the next ones don't wait for
	// it any more: it may wait for a lock, or its server can't be reached.
	patience = 10 * time.Millisecond
)

// A Member is a call that waits for a batch.
type Member[T any] struct {
	Call    T
	Settled bool // by the batch

	key   string
	ready chan Place // gets a value when the batch has ended

	// Batcher.mu guards these.
	leave func() // leaves its batch; nil while that forms
	gone  bool
	ended bool // its batch has
}

// A Place is that of a statement under way. The zero value holds none.
type Place struct{ end func() }

// Leave ends it.
func (p Place) Leave() {
	if p.end != nil {
		p.end()
	}
}

// Off has each call send a statement of its own from now on: statements can't be shared here.
func (b *Batcher[T]) Off() { b.off.Store(true) }

// Share has a call wait for its turn. It reports whether a batch has settled the call; if not, the
// caller sends its own statement and then leaves its place. Two calls of one key
// don't share a statement. The error is that of ctx; if a batch was sent for the call, Left is called.
func (b *Batcher[T]) Share(ctx context.Context, key string, call T) (_ Place, settled bool, _ error) {
	if b.off.Load() {
		return Place{}, false, nil
	}
	m, at := b.enter(key, call)
	if m == nil {
		return at, false, nil
	}
	select {
	case at := <-m.ready:
		return at, m.Settled, nil
	case <-ctx.Done():
		b.abandon(m)
		return Place{}, false, ctx.Err()
	}
}

// enter returns a member of the batch that forms, or nil and the place of a statement
// of the caller's own.
func (b *Batcher[T]) enter(key string, call T) (*Member[T], Place) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.underWay < b.Width:
		b.underWay++
		return nil, b.place()
	case b.keys[key]:
		return nil, Place{}
	}
	m := &Member[T]{Call: call, key: key, ready: make(chan Place, 1)}
	if b.keys == nil {
		b.keys = make(map[string]bool)
	}
	b.keys[key] = true
	b.forming = append(b.forming, m)
	return m, Place{}
}

// place returns a place, which ends by itself if its statement is late.
func (b *Batcher[T]) place() Place {
	late := time.AfterFunc(patience, b.next)
	return Place{func() {
		if late.Stop() {
			b.next()
		}
	}}
}

// next gives the place of a statement that has ended to the batch that forms.
func (b *Batcher[T]) next() {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(b.forming), size)
	if n == 0 {
		b.underWay--
		return
	}
	batch := slices.Clone(b.forming[:n])
	b.forming = slices.Delete(b.forming, 0, n)
	for _, m := range batch {
		delete(b.keys, m.key)
	}
	if n == 1 {
		batch[0].ready <- b.place()
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	present := n
	for _, m := range batch {
		m.leave = func() {
			present--
			if present == 0 {
				cancel()
			}
		}
	}
	go b.serve(ctx, cancel, batch, b.place())
}

func (b *Batcher[T]) serve(ctx context.Context, cancel context.CancelFunc, batch []*Member[T], at Place) {
	defer cancel()
	b.Send(ctx, batch)
	at.Leave()
	b.mu.Lock()
	defer b.mu.Unlock()
	var gone []*Member[T]
	for _, m := range batch {
		m.ready <- Place{}
		m.ended = true
		if m.gone {
			gone = append(gone, m)
		}
	}
	if len(gone) > 0 && b.Left != nil {
		b.Left(gone)
	}
}

// abandon takes a member out after its caller has stopped waiting. A batch that all have left ends.
func (b *Batcher[T]) abandon(m *Member[T]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.forming, m); i >= 0 {
		b.forming = slices.Delete(b.forming, i, i+1)
		delete(b.keys, m.key)
		return
	}
	if m.leave == nil { // it has just got a place of its own
		go func() { (<-m.ready).Leave() }()
		return
	}
	m.gone = true
	if m.ended && b.Left != nil {
		b.Left([]*Member[T]{m})
	}
	m.leave()
}
