// Package share lets concurrent calls share statements.
package share

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Batcher lets concurrent calls share statements, and so round trips, commits and disk writes. While fewer than Width
// statements are under way, a call sends its own statement at once. Further calls wait until a statement ends, and then
// share the next statement.
//
// A batch's statement skips a call that would have to wait for a lock, and the caller then sends a separate statement.
// So no member of a batch waits for another member's lock, or fails with its error.
//
// Width, Send and Left must be set before the first use. Then a Batcher is safe for concurrent use.
type Batcher[T any] struct {
	Width int // number of statements under way before further calls share a statement
	// Send sends one statement for all members, and sets Settled of the members that the statement settled.
	Send func(ctx context.Context, members []*Member[T])
	// Left is called for the members that left before their batch ended, if there are any. Left may be nil.
	Left func(gone []*Member[T])

	off atomic.Bool

	mu       sync.Mutex
	underWay int
	forming  []*Member[T]
	keys     map[string]bool // keys of forming
}

const (
	// size is the maximum number of calls that share a statement.
	size = 64
	// timeout is how long a statement counts as one of Width. A slower statement may be waiting for a lock, or its
	// server may be unreachable, and must not hold up others.
	timeout = 10 * time.Millisecond
)

// A Member is a call that waits for a batch.
type Member[T any] struct {
	Call    T
	Settled bool // the batch settled the call

	key   string
	ready chan Place // gets a value when the batch has ended

	// Batcher.mu guards these.
	leave func() // leaves the batch; nil while the batch forms
	gone  bool
	ended bool // the batch has ended
}

// A Place is one of the Width places for statements under way. The zero value holds no place.
type Place struct{ end func() }

// Leave gives up the place.
func (p Place) Leave() {
	if p.end != nil {
		p.end()
	}
}

// Off makes each later call send a separate statement, because the database can't share statements.
func (b *Batcher[T]) Off() { b.off.Store(true) }

// Share makes a call wait until it may be sent, and reports whether a batch has settled the call. Otherwise the caller
// must send a separate statement, and then call Leave of the Place. Two calls of one key don't share a statement. If
// ctx ends first, Share returns its error, and Left is called if the call's batch was already sent.
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

// enter returns a member of the forming batch, or nil and a place for the caller's own statement.
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

// place returns a place, which passes to the forming batch if the statement takes longer than timeout.
func (b *Batcher[T]) place() Place {
	late := time.AfterFunc(timeout, b.next)
	return Place{func() {
		if late.Stop() {
			b.next()
		}
	}}
}

// next gives the place of an ended or late statement to the forming batch.
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

// abandon removes a member after its caller has stopped waiting. A batch without present members is canceled.
func (b *Batcher[T]) abandon(m *Member[T]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.forming, m); i >= 0 {
		b.forming = slices.Delete(b.forming, i, i+1)
		delete(b.keys, m.key)
		return
	}
	if m.leave == nil { // the member has just got a place
		go func() { (<-m.ready).Leave() }()
		return
	}
	m.gone = true
	if m.ended && b.Left != nil {
		b.Left([]*Member[T]{m})
	}
	m.leave()
}
