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

func newLeadership(l *Lease) *leadership {
	inner, end := context.WithCancelCause(l.ctx.Context)
	return &leadership{lease: l, ctx: &leaseContext{inner, l}, end: end}
}

// lead has this process lead until the lease is lost or given up and Elected has returned,
// and reports whether it was given up by Resign.
func (e *Election) lead(ctx context.Context, l *Lease, r *request) (resigned bool) {
	stop := l.heartbeats(ctx, r)
	defer stop() // if a callback panics, the lease ends with its ttl
	p := newLeadership(l)
	e.current.Store(p)
	told := e.attend(p, e.work(p), (r.ttl-r.margin-r.beat())/2)
	stop()
	if lost := l.finishDo(ctx); lost != nil && !told {
		e.tellLost(lost)
	}
	resigned = errors.Is(context.Cause(p.ctx), ErrReleased)
	p.end(ErrReleased) // lets go of the contexts
	return resigned
}

// work calls Elected, and returns a channel that is closed when it has returned.
func (e *Election) work(p *leadership) <-chan struct{} {
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		if e.on.Elected != nil {
			e.on.Elected(p.ctx)
		}
	}()
	return worked
}

// attend waits until the leadership and the work have ended, and tells when there is less
// time left than near. It reports whether it has told of the loss of the lease.
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
			left, err := l.outlook()
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

// outlook returns how long the lease lives unless it is extended, and the error of the last
// try to extend it.
func (l *Lease) outlook() (left time.Duration, err error) {
	left = l.left()
	l.mu.Lock()
	defer l.mu.Unlock()
	return left, l.lastErr
}

// abandon releases a lease, if there is one, that came too late to be of use.
func (l *Lease) abandon(ctx context.Context) {
	if l != nil {
		_ = l.finishDo(ctx) // what is lost isn't missed
	}
}
