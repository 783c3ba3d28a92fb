//go:build linux

package storm

import (
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/sqlfence/sqlfence/test/proof/fence"
	"github.com/sqlfence/sqlfence/test/proof/history"
)

// A Lane asks one thing after the other.
type Lane struct {
	*rand.Rand
	Storm  *Storm
	Number int

	Locks []Lock          // that it has
	Then  []fence.Request // what it asks next

	slot *slot
	ops  []*history.Op
}

// A Lock is a current or former lock of a lane.
type Lock struct {
	Name, ID string
	Token    int64
}

func (l *Lane) run() {
	for !l.Storm.ending.Load() {
		r := l.next()
		op := &history.Op{Request: r, Lane: l.Number, Call: l.Storm.now()}
		op.Answer = l.slot.ask(r)
		op.Return = l.Storm.now()
		l.ops = append(l.ops, op)
		l.learn(op)
	}
}

func (l *Lane) next() (r fence.Request) {
	if len(l.Then) > 0 {
		r, l.Then = l.Then[0], l.Then[1:]
	} else {
		r = l.Storm.Mix(l)
	}
	r.ID = l.Storm.id.Add(1)
	return r
}

// learn keeps what the lanes can work with.
func (l *Lane) learn(op *history.Op) {
	r, a := op.Request, op.Answer
	switch {
	case a.Is == fence.Failed:
		time.Sleep(5 * time.Millisecond) // the server may be away
		return
	case a.Is == fence.Refused && (strings.Contains(a.Error, "guard") || strings.Contains(a.Error, "scope")):
		l.Storm.odd.add(r.Do + " " + steps(r) + ": " + a.Error)
	case a.Is != fence.OK:
		return
	}
	switch r.Do {
	case fence.Read:
		if s := r.Steps[0]; history.Find(l.Storm.Tables, s.Table).Serial && a.Mark > 0 {
			s.Form = []string{"update", "update literal"}[l.IntN(2)]
			l.Then = append(l.Then, fence.Request{Do: fence.Write, Steps: []fence.Step{s}, Serial: a.Mark, User: l.user()})
		}
	case fence.Acquire:
		l.Storm.Pool.Add(r.Name, a.Token)
		lock := Lock{r.Name, a.Lock, a.Token}
		l.Locks = append(l.Locks, lock)
		if t := &l.Storm.Tables[0]; t.Strange {
			l.Then = append(l.Then, l.underLock(t, lock), l.underLock(t, lock))
		} else if l.IntN(3) == 0 {
			l.Then = append(l.Then, fence.Request{Do: fence.Extend, Name: r.Name, Lock: a.Lock, TTL: l.Storm.TTL.Milliseconds()})
		}
	case fence.Edit:
		for range 2 {
			l.Then = append(l.Then, fence.Request{Do: fence.Write, Steps: []fence.Step{{Table: r.Steps[0].Table, Row: r.Steps[0].Row, Form: "update"}}, User: l.user()})
		}
	case fence.Issue, fence.Adopt:
		l.Storm.Pool.Add(r.Name, a.Token)
	case fence.Claim:
		t := history.Find(l.Storm.Tables, r.Steps[0].Table)
		l.Storm.Pool.Add(t.Resource(r.Steps[0].Row), a.Token)
	}
}

func steps(r fence.Request) string {
	var list []string
	for _, s := range r.Steps {
		list = append(list, s.Form+" "+s.Table)
	}
	return strings.Join(list, ", ")
}

// A Pool is the tokens that are known, by name. The zero Pool is empty.
type Pool struct {
	mu     sync.Mutex
	tokens map[string][]int64
	next   int64 // foreign token
}

// kept is how many tokens of a name are kept: the newest one, and those that are stale.
const kept = 4

// Add adds a token.
func (p *Pool) Add(name string, token int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tokens == nil {
		p.tokens = make(map[string][]int64)
	}
	list := p.tokens[name]
	at := len(list)
	for at > 0 && list[at-1] > token {
		at--
	}
	list = append(list[:at:at], append([]int64{token}, list[at:]...)...)
	p.tokens[name] = list[max(0, len(list)-kept):]
}

// Get returns a token of a name: the newest one, or with old one that is stale, if there is any.
func (p *Pool) Get(name string, old bool) (token int64, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.tokens[name]
	if len(list) == 0 {
		return 0, false
	}
	if old {
		return list[0], true
	}
	return list[len(list)-1], true
}

// Foreign returns a token such as another service gives: higher than all before.
func (p *Pool) Foreign() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next++
	return p.next
}
