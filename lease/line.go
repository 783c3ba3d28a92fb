package lease

import (
	"slices"
	"sync"
)

// lines are the waiters of this process, in a line for each key. Only the first
// in the line asks the database, so that its load grows with the number of
// processes, not of waiters.
type lines struct {
	mu    sync.Mutex
	byKey map[string][]*place
}

// A place is that of one waiter.
type place struct {
	lines *lines
	key   string
	first chan struct{} // closed when it is the first
	woken chan struct{} // holds a value when it is worth asking again
}

// busy reports whether somebody waits for key.
func (l *lines) busy(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.byKey[key]) > 0
}

// join adds a waiter to the end of the line. It needs a call of leave.
func (l *lines) join(key string) *place {
	p := &place{lines: l, key: key, first: make(chan struct{}), woken: make(chan struct{}, 1)}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byKey == nil {
		l.byKey = make(map[string][]*place)
	}
	l.byKey[key] = append(l.byKey[key], p)
	if len(l.byKey[key]) == 1 {
		close(p.first)
	}
	return p
}

func (p *place) leave() {
	p.lines.mu.Lock()
	defer p.lines.mu.Unlock()
	line := p.lines.byKey[p.key]
	wasFirst := line[0] == p
	line = slices.DeleteFunc(line, func(q *place) bool { return q == p })
	if len(line) == 0 {
		delete(p.lines.byKey, p.key)
		return
	}
	p.lines.byKey[p.key] = line
	if wasFirst {
		close(line[0].first)
	}
}

// wake has the first in the line of key ask again; an empty key is all of them.
func (l *lines) wake(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if key != "" {
		wakeFirst(l.byKey[key])
		return
	}
	for _, line := range l.byKey {
		wakeFirst(line)
	}
}

func wakeFirst(line []*place) {
	if len(line) == 0 {
		return
	}
	select {
	case line[0].woken <- struct{}{}:
	default: // it has been told
	}
}
