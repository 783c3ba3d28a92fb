package orders_test

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// open returns the actors that still have steps.
func (m *machine) open() (open []*actor) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range m.actors {
		if a.queued > 0 {
			open = append(open, a)
		}
	}
	return open
}

// settle waits until each session has ended its steps or waits for a lock.
func (m *machine) settle(ctx context.Context) error {
	for {
		if m.refused() {
			return nil
		}
		progress := m.progressed()
		if err := m.pause(ctx, m.watch != nil); err != nil {
			return err
		}
		open := m.open()
		if len(open) == 0 {
			return nil
		}
		if m.watch == nil || m.progressed() != progress {
			continue
		}
		waits, err := m.watch.waiting(ctx)
		if err != nil {
			return err
		}
		if m.progressed() == progress && m.wait(open, waits) {
			return nil
		}
	}
}

// end waits for a change at the end of an order.
func (m *machine) end(ctx context.Context) error {
	if m.watch == nil {
		return m.settle(ctx)
	}
	return m.pause(ctx, false)
}

// pause waits for a change. If short is set, pause ends after pace, so that the database can be queried.
func (m *machine) pause(ctx context.Context, short bool) error {
	if len(m.open()) == 0 {
		return nil
	}
	var tick <-chan time.Time
	if short {
		tick = time.After(pace)
	}
	select {
	case <-m.notify:
	case <-tick:
	case <-ctx.Done():
		return fmt.Errorf("%w: %v", context.Cause(ctx), m.waiters())
	}
	return nil
}

func (m *machine) waiters() (who []string) {
	for _, a := range m.open() {
		who = append(who, fmt.Sprintf("session %d", a.number))
	}
	return who
}

func (m *machine) progressed() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.progress
}

// refused reports whether all actors with steps were refused since the last action ended.
func (m *machine) refused() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range m.actors {
		if a.queued > 0 && a.busyAt != m.progress {
			return false
		}
	}
	return true
}

// wait reports whether all open actors' sessions wait, without a circle, which the database would end. Sessions are
// identified by the name of their database, because a call may open a new connection.
func (m *machine) wait(open []*actor, waits map[int]waiter) bool {
	waiting := 0
	for id, w := range waits {
		if w.in != m.itself {
			continue
		}
		waiting++
		if circle(id, id, waits, nil) {
			return false
		}
	}
	return waiting >= len(open)
}

// circle reports whether a session waits for the target, directly or by way of other sessions.
func circle(id, target int, waits map[int]waiter, seen []int) bool {
	return slices.ContainsFunc(waits[id].of, func(other int) bool {
		return other == target || !slices.Contains(seen, other) && circle(other, target, waits, append(seen, other))
	})
}

// giveUpLast makes the last actor with steps give up, because all would wait for ever.
func (m *machine) giveUpLast() {
	m.mu.Lock()
	for _, a := range slices.Backward(m.actors) {
		if a.queued > 0 && !a.giveUp {
			a.giveUp, a.busyAt = true, -1
			break
		}
	}
	m.mu.Unlock()
	m.wake()
}
