package lease

import (
	"context"
	"fmt"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// undoLimit bounds the wait for an abandoned attempt's statement, and each try to undo
// it. undoPause is the pause behind the first try; each is twice the one before.
const (
	undoLimit = 2 * time.Second
	undoPause = 50 * time.Millisecond
)

// ask asks for the lease once, and keeps the answer in a. limited is ctx with the limit
// of the request. The lease is nil if another holds it, and the outcome then says who.
func (m *Leases) ask(ctx, limited context.Context, a *acquisition) (*Lease, *outcome, error) {
	a.attempts++
	for {
		var on *session
		if a.ephemeral {
			var err error
			if on, err = m.sessions.enter(limited); err != nil {
				return nil, nil, a.failed(ctx, limited, m.explain(ctx, err))
			}
		}
		a.session = on.number()
		o, err := m.askDetached(limited, a.request)
		switch {
		case err != nil:
			on.leave()
			return nil, nil, a.failed(ctx, limited, m.explain(ctx, err))
		case o.won != nil:
			a.last = o
			m.warn(o.won.Token)
			if !o.won.Ephemeral { // the owner's lease from before needs no session
				on.leave()
				on = nil
			}
			l := m.newLease(ctx, o.won, on, a.terms)
			m.observe(ctx, a, l, o)
			return l, o, nil
		case o.session.Bool:
			a.last = o
			on.leave()
			m.observe(ctx, a, nil, o)
			return nil, o, nil
		case !o.session.Valid:
			on.leave()
			return nil, nil, a.wrap(errPooled)
		}
		on.lost()
		on.leave()
	}
}

// askDetached asks once. If ctx ends it returns at once; what the statement may still
// take is then released in the background.
func (m *Leases) askDetached(ctx context.Context, r *request) (*outcome, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	type answer struct {
		*outcome
		unknown bool // it may have taken the lease in spite of err
		err     error
	}
	// A driver may answer a cancelled context before the database has read the
	// statement. So the statement doesn't see ctx end: it is waited for.
	sending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	answered := make(chan answer, 1)
	go func() {
		o, unknown, err := m.take(sending, r)
		answered <- answer{o, unknown, err}
	}()
	select {
	case a := <-answered:
		cancel()
		if a.unknown {
			go m.undo(ctx, r, true)
		}
		return a.outcome, a.err
	case <-ctx.Done():
		go func() {
			defer cancel()
			a := answer{err: ctx.Err()}
			select {
			case a = <-answered:
				if !a.unknown && a.outcome == nil || a.err == nil && a.won == nil {
					return
				}
			case <-time.After(undoLimit):
				cancel()
				select {
				case a = <-answered:
				case <-time.After(undoLimit): // lib/pq waits for the server also then
				}
			}
			m.undo(ctx, r, a.err != nil)
		}()
		return nil, ctx.Err()
	}
}

// take asks the database for the lease, together with others if many ask at once. With an
// error it reports whether the lease may have been taken all the same.
func (m *Leases) take(ctx context.Context, r *request) (_ *outcome, unknown bool, _ error) {
	t := &taking{r: r}
	if err := m.settle(ctx, t); err != nil {
		return nil, t.unknown, err
	}
	o := t.o
	switch {
	case o.won != nil:
		// What is left is what was left when the answer was made, at the earliest
		// when the statement was sent.
		o.won.deadline = o.sent.Add(o.won.left)
	case !o.live && o.token >= sqlfence.MaxToken:
		return nil, false, fmt.Errorf("%w: %s", sqlfence.ErrTokenLimit,
			sqltext.Exhausted(r.key, o.token, sqlfence.MaxToken))
	case !o.live && o.token < 0:
		return nil, false, fmt.Errorf("the table %s holds the negative token %d, which was never issued: correct the "+
			"row by hand", sqltext.LedgerTable, o.token)
	}
	return o, false, nil
}

// undo releases what an attempt may have taken. It goes on trying until the
// lease would have ended by its ttl. late: the attempt's statement had no answer, and may be on its way to the
// server yet, as behind a network that stood still; then to find nothing isn't the end.
func (m *Leases) undo(ctx context.Context, r *request, late bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.ttl)
	defer cancel()
	for pause := undoPause; ; pause *= 2 {
		try, cancel := context.WithTimeout(ctx, undoLimit)
		_, err := m.exec(try, m.dialect.undo(r.key, r.lockID))
		cancel()
		if err == nil {
			m.queues.wake(r.key)
		} else {
			pause = min(pause, undoLimit)
		}
		if err == nil && !late || err != nil && isClosed(err) {
			return
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			if err != nil {
				m.log().Debug("lease: an attempt with an unknown outcome wasn't undone; what it took has "+
					"ended with its ttl",
					"key", r.key, "ttl", r.ttl, "err", err)
			}
			return
		}
	}
}

// warn logs a token that is near the end of the range.
func (m *Leases) warn(token sqlfence.Token) {
	if token.Value >= sqlfence.WarnToken {
		m.log().Warn("lease: fencing tokens are running out",
			"name", token.Name, "token", token.Value, "limit", int64(sqlfence.MaxToken))
	}
}
