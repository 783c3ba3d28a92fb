package lease

import (
	"context"
	"errors"
	"time"
)

// A leadership is the time of one lease of an election.
type leadership struct {
	lease *Lease
	ctx   context.Context // until the work is to end
	end   context.CancelCauseFunc
}

// lead leads until the lease is lost or given up and Elected has returned. It reports whether Resign was called.
func (e *Election) lead(ctx context.Context, l *Lease, r *request) (resigned bool) {
	stop := l.heartbeats(ctx, r)
	defer stop() // if a callback panics, the lease ends with its ttl
	inner, end := context.WithCancelCause(l.ctx.Context)
	p := &leadership{lease: l, ctx: &leaseContext{inner, l}, end: end}
	e.current.Store(p)
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		if e.on.Elected != nil {
			e.on.Elected(p.ctx)
		}
	}()
	told := e.attend(p, worked, (r.ttl-r.margin-r.beat())/2)
	stop()
	if lost := l.finishDo(ctx); lost != nil && !told {
		e.tellLost(lost)
	}
	resigned = errors.Is(context.Cause(p.ctx), ErrReleased)
	p.end(ErrReleased) // lets go of the contexts
	return resigned
}

// attend waits until the leadership and the work have ended, and calls Short when less time than near is left. It
// reports whether it has called Lost.
func (e *Election) attend(p *leadership, worked <-chan struct{}, near time.Duration) (told bool) {
	l := p.lease
	short, warned := time.NewTimer(l.left()-near), false
	defer short.Stop()
	ended, lost := p.ctx.Done(), l.Done()
	for ended != nil || worked != nil {
		select {
		case <-ended:
			ended = nil
		case <-worked:
			worked = nil
		case <-lost:
			lost = nil
			if err := l.Err(); errors.Is(err, ErrLeaseLost) {
				e.tellLost(err)
				told = true
			}
		case <-short.C:
			left := l.left()
			l.mu.Lock()
			err := l.lastErr
			l.mu.Unlock()
			switch {
			case left > near:
				warned = false
				short.Reset(left - near)
			case left > 0: // else it is lost
				if !warned && e.on.Short != nil {
					e.on.Short(left, err)
				}
				warned = true
				short.Reset(left) // by then it is extended, or lost
			}
		}
	}
	return told
}

func (e *Election) tellLost(err error) {
	if e.on.Lost != nil {
		e.on.Lost(err)
	}
}
