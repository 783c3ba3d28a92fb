package tokens

import (
	"context"
	"database/sql"
	"runtime"
	"sync"
	"time"

	"github.com/sqlfence/sqlfence/internal/late"
)

// lines lets concurrent calls for one name share a statement. There is a line
// of callers for each name; names don't wait for each other.
//
// The rule that keeps real-time order: a caller may join a batch only until its
// statement starts. So a statement that gives a caller its token was sent after
// the call had begun, and finds every token that was given out before. That holds
// also for a statement that is sent beside another one, which is late.
type lines struct {
	// take takes n tokens of name, or as many as there are left.
	take func(ctx context.Context, name string, n int64) (last, taken int64, err error)
	db   *sql.DB // whose connections take uses; nil for any number of them

	mu     sync.Mutex
	byName map[string]*line // of the names that have a statement under way
}

// A line is what is under way for one name. Its fields belong to lines.mu.
type line struct {
	forming *batch // of those who wait for the next statement; nil if there are none
	served  bool   // a goroutine will send the next statement when its own has ended
	late    int    // statements under way that the next one doesn't wait for any more
}

// A batch is the callers that share one statement.
type batch struct {
	// ctx is no caller's: it ends when all of them have gone.
	ctx    context.Context
	cancel context.CancelFunc

	joined int64 // not written after the statement has started
	gone   int64

	// These belong to lines.mu.
	overdue     *time.Timer // nil before the statement has started
	ended, late bool

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
	n := l.byName[name]
	if n == nil {
		n = new(line)
		if l.byName == nil {
			l.byName = make(map[string]*line)
		}
		l.byName[name] = n
	}
	b := n.forming
	if b == nil {
		b = &batch{done: make(chan struct{})}
		b.ctx, b.cancel = context.WithCancel(context.Background())
		n.forming = b
	}
	if !n.served {
		n.served = true
		go l.serve(name, n)
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
	if n := l.byName[name]; n != nil && n.forming == b {
		n.forming = nil
	}
}

// serve sends one statement after the other until no one waits for name, or its own
// is late, and another goroutine serves the name.
func (l *lines) serve(name string, n *line) {
	for b := l.start(name, n); b != nil; b = l.start(name, n) {
		b.last, b.taken, b.err = l.take(b.ctx, name, b.joined)
		b.cancel()
		close(b.done)
		if l.end(name, n, b) {
			return
		}
		// Those who got their tokens often come back at once: let them join the
		// next statement rather than the one after it.
		runtime.Gosched()
	}
}

// start closes the batch that forms for name to newcomers and returns it. If
// there is none it returns nil, and the caller must stop serving the name.
func (l *lines) start(name string, n *line) *batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := n.forming
	n.forming = nil
	if b == nil {
		n.served = false
		l.forget(name, n)
		return nil
	}
	b.overdue = time.AfterFunc(late.After(n.late), func() { l.overtake(name, n, b) })
	return b
}

// overtake has the next statement of name not wait for that of b any more, unless
// it has just ended. Where as many are late as may be, it waits until one of them has ended.
func (l *lines) overtake(name string, n *line, b *batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b.ended {
		return
	}
	if n.late >= late.Most(l.db) {
		b.overdue.Reset(late.After(n.late))
		return
	}
	b.late = true
	n.late++
	n.served = n.forming != nil
	if n.served {
		go l.serve(name, n)
	}
}

// end takes note that the statement of b has ended, and reports whether it was late.
func (l *lines) end(name string, n *line, b *batch) (wasLate bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b.ended = true
	b.overdue.Stop()
	if b.late {
		n.late--
		l.forget(name, n)
	}
	return b.late
}

// forget drops the line of a name that has nothing under way.
func (l *lines) forget(name string, n *line) {
	if !n.served && n.late == 0 {
		delete(l.byName, name)
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
