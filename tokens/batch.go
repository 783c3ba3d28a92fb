package tokens

import (
	"context"
	"runtime"
	"sync"
)

// lines lets concurrent calls for one name share a statement. There is a line
// of callers for each name; names don't wait for each other.
//
// The rule that keeps real-time order: a caller may join a batch only until its
// statement starts. So a statement that gives a caller its token was sent after
// the call had begun, and finds every token that was given out before.
type lines struct {
	// take takes n tokens of name, or as many as there are left.
	take func(ctx context.Context, name string, n int64) (last, taken int64, err error)

	mu sync.Mutex
	// forming has a key for each name that a goroutine serves; the value is the
	// batch of those who wait for its next statement, nil if there are none.
	forming map[string]*batch
}

// A batch is the callers that share one statement.
type batch struct {
	// ctx is no caller's: it ends when all of them have gone.
	ctx    context.Context
	cancel context.CancelFunc

	joined int64 // not written after the statement has started
	gone   int64

	done        chan struct{} // closed when the statement has ended and the rest is set
	last, taken int64
	err         error
}

// issue waits for a token of name, or for the end of ctx.
func (l *lines) issue(ctx context.Context, name string) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	b, place := l.join(name)
	select {
	case <-b.done:
		return b.token(name, place)
	case <-ctx.Done():
		l.leave(name, b)
		return 0, ctx.Err()
	}
}

// join adds a caller to the batch that forms for name, and returns its place in
// it, from 1. Without a goroutine that serves the name it starts one.
func (l *lines) join(name string) (*batch, int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, served := l.forming[name]
	if b == nil {
		b = &batch{done: make(chan struct{})}
		b.ctx, b.cancel = context.WithCancel(context.Background())
		if l.forming == nil {
			l.forming = make(map[string]*batch)
		}
		l.forming[name] = b
	}
	if !served {
		go l.serve(name)
	}
	b.joined++
	return b, b.joined
}

// leave takes note of a caller that doesn't wait any more. Its place stays: a
// token may be skipped. A batch that all have left is not to be sent, or joined.
func (l *lines) leave(name string, b *batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b.gone++
	if b.gone < b.joined {
		return
	}
	b.cancel()
	if l.forming[name] == b {
		l.forming[name] = nil
	}
}

// serve sends one statement after the other until no one waits for name.
func (l *lines) serve(name string) {
	for b := l.start(name); b != nil; b = l.start(name) {
		b.last, b.taken, b.err = l.take(b.ctx, name, b.joined)
		b.cancel()
		close(b.done)
		// Those who got their tokens often come back at once: let them join the
		// next statement rather than the one after it.
		runtime.Gosched()
	}
}

// start closes the batch that forms for name to newcomers and returns it. If
// there is none it returns nil, and the caller must stop serving the name.
func (l *lines) start(name string) *batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.forming[name]
	if b == nil {
		delete(l.forming, name)
		return nil
	}
	l.forming[name] = nil
	return b
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
