package lease

import (
	"context"
	"fmt"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/sqltext"
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
		o, err := m.take(limited, a.request)
		switch {
		case err != nil:
			on.leave()
			return nil, nil, a.failed(ctx, limited, m.explain(ctx, err))
		case o.won != nil:
			a.last = o
			m.options.WarnOfLimit("lease", o.won.Token)
			if !o.won.Ephemeral { // a lease that is resumed needs no session
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

// take asks the database for the lease, together with others if many ask at once. If ctx ends, it returns at once, and
// what the statement may still take is released in the background.
func (m *Leases) take(ctx context.Context, r *request) (*outcome, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t := &taking{r: r}
	if err := m.settle(ctx, t); err != nil {
		return nil, err
	}
	o := t.o
	if o.won != nil && o.won.LockID != r.lockID && m.abandoned.has(o.won.LockID) { // it is about to be free
		o.won, o.live = nil, true
	}
	switch {
	case o.won != nil:
		// What is left is what was left when the answer was made, at the earliest
		// when the statement was sent.
		o.won.deadline = o.sent.Add(o.won.left)
	case !o.live && o.token >= sqlfence.MaxToken:
		return nil, fmt.Errorf("%w: %s", sqlfence.ErrTokenLimit,
			sqltext.Exhausted(r.key, o.token, sqlfence.MaxToken))
	case !o.live && o.token < 0:
		return nil, fmt.Errorf("the table %s holds the negative token %d, which was never issued: correct the "+
			"row by hand", sqltext.LedgerTable, o.token)
	}
	return o, nil
}
