package lease

import (
	"context"
	"database/sql"
	"slices"
	"sync"
	"time"

	"github.com/sqlfence/sqlfence/internal/late"
)

// lines are the waiters of this process, in a line for each key. Only the first
// in the line asks the database, so that its load grows with the number of
// processes, not of waiters. One whose attempt is not answered in time, because its
// server can't be reached or the attempt waits there, steps out of the line until it is.
type lines struct {
	db *sql.DB // whose connections the attempts use; nil for any number of them

	mu    sync.Mutex
	byKey map[string]*line
}

// A line is that of one key. Its fields belong to lines.mu.
type line struct {
	places []*place
	late   int      // waiters who have stepped out
	last   *outcome // the last answer that said that the lease is held; nil without one that still counts
	until  time.Time
}

// A place is that of one waiter.
type place struct {
	lines *lines
	key   string
	woken chan struct{} // holds a value when it is worth asking again

	// The rest belongs to lines.mu.

	line   *line
	first  chan struct{} // closed when it is the first
	asking *time.Timer   // nil while it isn't
	late   bool          // out of the line
}

// busy reports whether somebody waits for key.
func (l *lines) busy(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byKey[key] != nil
}

// join adds a waiter to the end of the line. It needs a call of leave.
func (l *lines) join(key string) *place {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.byKey[key]
	if n == nil {
		n = new(line)
		if l.byKey == nil {
			l.byKey = make(map[string]*line)
		}
		l.byKey[key] = n
	}
	p := &place{lines: l, key: key, line: n, woken: make(chan struct{}, 1)}
	p.enter(len(n.places))
	return p
}

// leave gives the place up.
func (p *place) leave() {
	p.lines.mu.Lock()
	defer p.lines.mu.Unlock()
	if p.late {
		p.line.late--
	} else {
		p.exit()
	}
	if len(p.line.places)+p.line.late == 0 {
		delete(p.lines.byKey, p.key)
	}
}

// await waits until it is the first, or returns false if ctx has ended.
func (p *place) await(ctx context.Context) bool {
	p.lines.mu.Lock()
	first := p.first
	p.lines.mu.Unlock()
	select {
	case <-first:
		return true
	case <-ctx.Done():
		return false
	}
}

// asks takes note that the first sends an attempt. It needs a call of answered.
func (p *place) asks() {
	p.lines.mu.Lock()
	defer p.lines.mu.Unlock()
	var asking *time.Timer
	asking = time.AfterFunc(late.After(p.line.late), func() {
		p.lines.mu.Lock()
		defer p.lines.mu.Unlock()
		switch {
		case p.asking != asking:
		case p.line.late >= late.Most(p.lines.db):
			asking.Reset(late.After(p.line.late))
		default:
			p.exit()
			p.late = true
			p.line.late++
		}
	})
	p.asking = asking
}

// answered takes note that the attempt has ended, with an answer or without. Whoever
// had stepped out comes back behind the one who is asking now.
func (p *place) answered(o *outcome) {
	p.lines.mu.Lock()
	defer p.lines.mu.Unlock()
	p.asking.Stop()
	p.asking = nil
	if p.late {
		p.late = false
		p.line.late--
		p.enter(min(1, len(p.line.places)))
	}
	if held := o.held(); held != nil {
		p.line.last = held
		p.line.until = time.Now().Add(time.Duration(held.left.Int64) * time.Microsecond)
	}
}

// heard returns the last answer that anybody in the line has got, if the lease that it
// tells of hasn't been released in this process since, nor come to its end; else nil.
func (p *place) heard() *outcome {
	p.lines.mu.Lock()
	defer p.lines.mu.Unlock()
	if time.Now().After(p.line.until) {
		return nil
	}
	return p.line.last
}

// enter puts it at a place in the line.
func (p *place) enter(at int) {
	p.line.places = slices.Insert(p.line.places, at, p)
	p.first = make(chan struct{})
	if at == 0 {
		close(p.first)
	}
}

// exit takes it out of the line, and tells the next.
func (p *place) exit() {
	n := p.line
	wasFirst := n.places[0] == p
	n.places = slices.DeleteFunc(n.places, func(q *place) bool { return q == p })
	if wasFirst && len(n.places) > 0 {
		close(n.places[0].first)
	}
}

// wake has the first in the line of key ask again; an empty key is all of them.
func (l *lines) wake(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if key != "" {
		l.byKey[key].wake()
		return
	}
	for _, n := range l.byKey {
		n.wake()
	}
}

func (n *line) wake() {
	if n == nil {
		return
	}
	n.last = nil
	if len(n.places) == 0 {
		return
	}
	select {
	case n.places[0].woken <- struct{}{}:
	default: // it has been told
	}
}
