package lease

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A batcher lets concurrent calls share statements, and with them round trips, commits and
// writes to the disk. As long as few statements are under way a call sends its own at
// once. Further calls wait until one of those has ended, and then share one.
//
// A batch leaves to its members what it can't settle without waiting. Each then sends a statement
// of its own: so no member waits for another's lock or fails by another's error.
type batcher[T any] struct {
	width int // how many statements are under way before the next calls share one
	// send sends one statement for all members, and sets what it has settled.
	send func(ctx context.Context, members []*member[T])
	// left is called for a member that had gone before its batch ended.
	left func(m *member[T])
	off  atomic.Bool // statements can't be shared here

	mu       sync.Mutex
	underWay int
	forming  []*member[T]
	keys     map[string]bool // of forming
}

const (
	// batchSize is how many calls a statement serves at most.
	batchSize = 64
	// batchPatience is how long a statement may take before the next ones don't wait for
	// it any more: it may wait for a lock, or its server can't be reached.
	batchPatience = 10 * time.Millisecond
)

// A member is a call that waits for a batch.
type member[T any] struct {
	call    T
	key     string
	settled bool       // by the batch
	ready   chan place // gets a value when the batch has ended

	// batcher.mu guards these.
	leave func() // leaves its batch; nil while that forms
	gone  bool
}

// A place is that of a statement under way. The zero value holds none.
type place struct{ end func() }

func (p place) leave() {
	if p.end != nil {
		p.end()
	}
}

// share has a call wait for its turn. It reports whether a batch has settled the call; if not, the
// caller sends its own statement and then leaves its place. Two calls of one key
// don't share a statement. With an error the call isn't settled, and was sent if sent is
// true.
func (b *batcher[T]) share(ctx context.Context, key string, call T) (_ place, settled, sent bool, _ error) {
	if b.off.Load() {
		return place{}, false, false, nil
	}
	m, at := b.enter(key, call)
	if m == nil {
		return at, false, false, nil
	}
	select {
	case at := <-m.ready:
		return at, m.settled, false, nil
	case <-ctx.Done():
		return place{}, false, b.abandon(m), ctx.Err()
	}
}

// enter returns a member of the batch that forms, or nil and the place of a statement
// of the caller's own.
func (b *batcher[T]) enter(key string, call T) (*member[T], place) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.underWay < b.width:
		b.underWay++
		return nil, b.place()
	case b.keys[key]:
		return nil, place{}
	}
	m := &member[T]{call: call, key: key, ready: make(chan place, 1)}
	if b.keys == nil {
		b.keys = make(map[string]bool)
	}
	b.keys[key] = true
	b.forming = append(b.forming, m)
	return m, place{}
}

// place returns a place, which ends by itself if its statement is late.
func (b *batcher[T]) place() place {
	late := time.AfterFunc(batchPatience, b.next)
	return place{func() {
		if late.Stop() {
			b.next()
		}
	}}
}

// next gives the place of a statement that has ended to the batch that forms.
func (b *batcher[T]) next() {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(b.forming), batchSize)
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

func (b *batcher[T]) serve(ctx context.Context, cancel context.CancelFunc, batch []*member[T], at place) {
	defer cancel()
	b.send(ctx, batch)
	at.leave()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range batch {
		m.ready <- place{}
		if m.gone && b.left != nil {
			b.left(m)
		}
	}
}

// abandon takes a member out after its caller has stopped waiting, and reports whether its batch
// has been sent. A batch that all have left ends.
func (b *batcher[T]) abandon(m *member[T]) (sent bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.forming, m); i >= 0 {
		b.forming = slices.Delete(b.forming, i, i+1)
		delete(b.keys, m.key)
		return false
	}
	if m.leave == nil { // it has just got a place of its own
		go func() { (<-m.ready).leave() }()
		return false
	}
	m.gone = true
	m.leave()
	return true
}
