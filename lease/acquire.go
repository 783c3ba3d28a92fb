package lease

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// Acquire takes the lease of key, and waits while another holder has it, until ctx ends or a term limits the wait. A
// lease that is granted after ctx has ended is released in the background.
//
// Errors: [*HeldError] if a term limited the wait; [context.DeadlineExceeded] if the database didn't respond within
// that limit; [sqlfence.ErrTokenLimit]; [ErrInvalid]; [ErrNoSessions].
func (m *Leases) Acquire(ctx context.Context, key string, terms ...Term) (*Lease, error) {
	r, err := m.request(key, terms)
	if err != nil {
		return nil, err
	}
	return m.waitInQueue(ctx, r)
}

// TryAcquire is Acquire with one attempt, by default of at most 5 s ([Timeout]). ok is false if another holder has the
// lease.
func (m *Leases) TryAcquire(ctx context.Context, key string, terms ...Term) (lease *Lease, ok bool, err error) {
	r, err := m.request(key, terms)
	if err != nil {
		return nil, false, err
	}
	if !r.timed {
		r.limit = responseLimit
	}
	limited, cancel := r.limited(ctx)
	defer cancel()
	lease, _, err = m.attempt(ctx, limited, &acquisition{request: r})
	return lease, lease != nil, err
}

// waitInQueue waits in the key's queue, and tries to take the lease when the request is the first of the queue, until
// an attempt succeeds or the attempts or the time are used up.
func (m *Leases) waitInQueue(ctx context.Context, r *request) (*Lease, error) {
	limited, cancel := r.limited(ctx)
	defer cancel()
	a := acquisition{request: r}
	// A caller with [Resume] may itself hold the lease for which the queue waits, so it tries once before it queues.
	if r.resumes && m.queues.busy(r.key) {
		if lease, _, err := m.attempt(ctx, limited, &a); lease != nil || err != nil {
			return lease, err
		}
	}
	w := m.queues.join(r.key)
	defer w.leave()
	inTurn := func() (*Lease, error) {
		if !w.await(limited) {
			return nil, a.gaveUp(ctx, w)
		}
		if m.listener.listener != nil {
			a.notified = a.longest()
		}
		w.begin()
		lease, o, err := m.attempt(ctx, limited, &a)
		w.end(o)
		return lease, err
	}
	if lease, err := inTurn(); lease != nil || err != nil {
		return lease, err
	}
	if !a.exhausted() {
		m.listener.enter()
		defer m.listener.leave()
	}
	for !a.exhausted() {
		if !a.sleep(limited, w, m.listener.listens()) {
			return nil, a.gaveUp(ctx, w)
		}
		if lease, err := inTurn(); lease != nil || err != nil {
			return lease, err
		}
	}
	return nil, a.heldError()
}

type request struct {
	key, lockID string
	*terms
	session  sql.NullInt64
	began    time.Time     // when the caller's request began, for observers
	notified time.Duration // how long the attempt will wait for a notification; 0 if it won't wait for one
}

func (m *Leases) request(key string, list []Term) (*request, error) {
	key, err := NormalizeKey(key)
	if err != nil {
		return nil, err
	}
	t, err := newTerms(m.options.defaults, list)
	if err != nil {
		return nil, invalid("%w", err)
	}
	r := &request{key: key, lockID: newLockID(), terms: t}
	if len(m.options.observers) > 0 {
		r.began = time.Now()
	}
	return r, nil
}

// limited returns ctx with the request's time limit.
func (r *request) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if r.limit == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, r.limit)
}

func (r *request) wrap(err error) error {
	switch {
	case err == nil, errors.Is(err, ErrHeld), errors.Is(err, sqlfence.ErrTokenLimit):
		return err
	}
	return fmt.Errorf("lease: acquire %q: %w", r.key, err)
}

// attempt tries once to take the lease, and stores the outcome in a. limited is ctx with the request's time limit. The
// lease is nil if another holder has it.
func (m *Leases) attempt(ctx, limited context.Context, a *acquisition) (*Lease, *outcome, error) {
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
			if !o.won.Ephemeral { // the resumed lease belongs to no session
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

// take tries once to take the lease, in a shared statement if many calls try at the same time. When ctx ends, take
// returns at once, and a lease that the statement may still take is released in the background.
func (m *Leases) take(ctx context.Context, r *request) (*outcome, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t := &taking{r: r}
	if err := m.settle(ctx, t); err != nil {
		return nil, err
	}
	o := t.o
	if o.won != nil && o.won.LockID != r.lockID && m.abandoned.has(o.won.LockID) { // the lease is being released
		o.won, o.live = nil, true
	}
	switch {
	case o.won != nil:
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
