package orders_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// errNotInTime ends an order in which a session waits for too long.
var errNotInTime = errors.New("the order hasn't ended in time")

// pace is how long a step runs before the database is queried for waiting sessions, and the interval of these queries.
const pace = time.Millisecond / 2

// A machine runs the steps of a scenario in one order.
type machine struct {
	*lab
	sc     *scenario
	watch  *watch // nil if the database refuses sessions instead of letting them wait; they then try again
	actors []*actor

	mu       sync.Mutex
	changed  *sync.Cond // with mu: signalled when an action has ended, or an actor must give up
	clock    int64
	progress int // number of ended actions
	waits    int // steps after which a session was waiting
	history  []*op
	notify   chan struct{} // gets a value after each change

	alone sync.Mutex // held during each action if no session waits in the database
}

// An actor is a session that executes its steps.
type actor struct {
	*session
	steps  chan string
	queued int // steps that the actor has received and not ended
	busyAt int // the progress when it was refused; -1 if it wasn't
	giveUp bool
}

// run runs an order from the beginning. The machine's history has the results.
func (l *lab) run(ctx context.Context, w *watch, sc *scenario, order []int) (m *machine, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, harness.Patience, errNotInTime)
	defer cancel()
	m = &machine{lab: l, sc: sc, watch: w, notify: make(chan struct{}, 1)}
	m.changed = sync.NewCond(&m.mu)
	defer context.AfterFunc(ctx, m.wake)()
	var working sync.WaitGroup
	for i, script := range sc.scripts {
		a := &actor{session: l.sessions[i], steps: make(chan string, len(script)), busyAt: -1}
		m.actors = append(m.actors, a)
		working.Go(func() { m.work(ctx, a) })
	}
	at := make([]int, len(sc.scripts))
	for _, i := range order {
		m.mu.Lock()
		m.actors[i].queued++
		m.mu.Unlock()
		m.actors[i].steps <- sc.scripts[i][at[i]]
		at[i]++
		if err = m.settle(ctx); err != nil {
			break
		}
		if m.open() != nil {
			m.waits++
		}
	}
	for _, a := range m.actors {
		close(a.steps)
	}
	for err == nil && m.open() != nil {
		if m.watch == nil {
			m.giveUpLast()
		}
		err = m.end(ctx)
	}
	if err != nil {
		cancel()
	}
	working.Wait()
	return m, err
}

// wake makes all actors check again.
func (m *machine) wake() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changed.Broadcast()
	select {
	case m.notify <- struct{}{}:
	default:
	}
}

// work executes the actor's steps.
func (m *machine) work(ctx context.Context, a *actor) {
	for step := range a.steps {
		parts := a.parts(step, m.sc)
		for i, part := range parts {
			if !m.act(ctx, a, part) {
				break
			}
			if i == len(parts)-1 && slices.Contains([]string{"take", "adopt", "acquire"}, step) {
				a.ready = true
			}
		}
		m.mu.Lock()
		a.queued--
		m.progress++
		m.mu.Unlock()
		m.wake()
	}
}

// act runs an action, repeats it while the database is busy, and reports whether the step continues.
func (m *machine) act(ctx context.Context, a *actor, name string) bool {
	if a.skips(name) {
		return false
	}
	for {
		o := &op{session: a.number, action: name, editor: a.editor}
		m.mu.Lock()
		m.clock++
		o.began = m.clock
		m.lab.tag++
		o.tag = m.lab.tag
		at := m.progress
		m.mu.Unlock()
		if m.watch == nil {
			m.alone.Lock()
		}
		if a.tx != nil {
			o.txBegan = a.txBegan
		}
		o.err = a.action(name)(ctx, a.session, o)
		if m.watch == nil {
			m.alone.Unlock()
		}
		o.outcome = outcomeOf(o.err)
		if o.outcome == busy && m.again(ctx, a, at) {
			continue
		}
		m.note(a, o)
		return o.outcome == done
	}
}

// skips reports whether the actor leaves an action out. Without what the rules need, a session doesn't write. A lost
// transaction is only ended.
func (a *actor) skips(name string) bool {
	if name == "commit" || name == "rollback" {
		return a.tx == nil
	}
	if name == "touch" || name == "bare" {
		return a.dead && a.tx != nil
	}
	if name == "hold" || name == "note" {
		return a.tx == nil || a.dead || !a.ready
	}
	if _, ok := writes[name]; !ok && name != "begin" && name != "snapshot" && name != "check" {
		return false
	}
	return a.dead && a.tx != nil || !a.ready
}

// again waits until another actor has ended an action since the progress at, and reports whether the actor should try
// its action again.
func (m *machine) again(ctx context.Context, a *actor, at int) bool {
	m.mu.Lock()
	a.busyAt = at
	m.mu.Unlock()
	m.wake()
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.progress == at && !a.giveUp && ctx.Err() == nil {
		m.changed.Wait()
	}
	if a.giveUp || ctx.Err() != nil {
		a.giveUp = false
		return false
	}
	return true
}

// note adds an ended action to the history.
func (m *machine) note(a *actor, o *op) {
	m.mu.Lock()
	m.clock++
	o.ended = m.clock
	m.progress++
	m.history = append(m.history, o)
	m.mu.Unlock()
	if o.outcome != done && a.tx != nil && (o.outcome.isConcurrency() || m.endsTx) {
		a.dead = true
	}
	if a.tx == nil {
		a.dead = false
	}
	if o.outcome == busy && o.action == "commit" {
		m.act(context.Background(), a, "rollback")
	}
	m.wake()
}

// describe lists the actions in the order in which they ended.
func describe(m *machine) string {
	if m == nil {
		return ""
	}
	var all []string
	for _, o := range m.history {
		all = append(all, o.String())
	}
	return strings.Join(all, "\n")
}
