package lease

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/sqlfence/sqlfence"
)

// Acquire takes the lease of key, and waits while another holds it. The lease
// comes with the next fencing token of the name key, which [Lease.Context]
// carries: writes on the tables that the name guards are fenced with it.
//
// Without contention it is one statement, on SQLite one transaction. It then
// waits only for transactions still open that have written under an older token
// by the guard of the ledger: the new token is to come after them. While another
// holds the lease, callers of one Leases wait in line, and the first asks again
// after a pause, when the lease would end, and when it is woken by a release in
// this process or heard by a [Listener]. When it isn't answered within 100 ms, the
// next in the line asks too, on another connection; the one after that has to wait
// twice as long, and so on: at most three, and with [sql.DB.SetMaxOpenConns] on at
// most a quarter of the pool's connections.
//
// If ctx ends it returns at once; what a statement under way may still take is
// released in the background. What can't be released, because the database can't
// be reached, ends with its ttl.
//
// Errors: [*HeldError] (which is [ErrHeld]) when attempts or time ran out and the
// last answer of the database was that another holds the lease, to this call or to
// another in its line; [context.DeadlineExceeded] when time ran out without an
// answer, [sqlfence.ErrTokenLimit], with nothing written, if the key's tokens are
// used up, [ErrInvalid] for the key or the terms, that of ctx, or the database's own.
// They are not retried, other than serialization failures and deadlocks.
func (m *Leases) Acquire(ctx context.Context, key string, terms ...Term) (*Lease, error) {
	r, err := m.request(key, terms)
	if err != nil {
		return nil, err
	}
	return m.waitInLine(ctx, r)
}

// TryAcquire takes the lease of key if it is free: ok tells whether it was. It
// asks once; terms on waiting, other than the timeout, have no effect. See
// [Leases.Acquire] for the rest, and for the errors, without [ErrHeld].
func (m *Leases) TryAcquire(ctx context.Context, key string, terms ...Term) (lease *Lease, ok bool, err error) {
	r, err := m.request(key, terms)
	if err != nil {
		return nil, false, err
	}
	limited, cancel := r.limited(ctx)
	defer cancel()
	lease, _, err = m.ask(ctx, limited, &acquisition{request: r})
	return lease, lease != nil, err
}

// waitInLine asks when it is this request's turn, until the lease is taken or the
// attempts or the time are over.
func (m *Leases) waitInLine(ctx context.Context, r *request) (*Lease, error) {
	limited, cancel := r.limited(ctx)
	defer cancel()
	a := acquisition{request: r}
	// An owner may hold the lease already, and must not wait for those who wait
	// for its release.
	if r.owner != "" && m.queues.busy(r.key) {
		if lease, _, err := m.ask(ctx, limited, &a); lease != nil || err != nil {
			return lease, err
		}
	}
	w := m.queues.join(r.key)
	defer w.leave()
	inTurn := func() (*Lease, error) {
		if !w.await(limited) {
			return nil, a.gaveUp(ctx, w)
		}
		w.asks()
		lease, o, err := m.ask(ctx, limited, &a)
		w.answered(o)
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
		if !a.pause(limited, w, m.listener.listens()) {
			return nil, a.gaveUp(ctx, w)
		}
		if lease, err := inTurn(); lease != nil || err != nil {
			return lease, err
		}
	}
	return nil, a.held()
}

// A request is what one call asks for.
type request struct {
	key, lockID string
	*terms
	session sql.NullInt64
}

func (m *Leases) request(key string, list []Term) (*request, error) {
	key, err := NormalizeKey(key)
	if err != nil {
		return nil, err
	}
	t, err := newTerms(m.defaults, list)
	if err != nil {
		return nil, err
	}
	return &request{key: key, lockID: newLockID(), terms: t}, nil
}

// limited returns ctx with the limit of the request.
func (r *request) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	switch {
	case r.waits && r.limit > 0:
		return context.WithTimeout(ctx, r.limit)
	case r.waits: // one attempt, which is to be answered all the same
		return context.WithTimeout(ctx, DefaultTimeout)
	case r.timeout > 0:
		return context.WithTimeout(ctx, r.timeout)
	}
	return ctx, func() {}
}

func (r *request) wrap(err error) error {
	switch {
	case err == nil, errors.Is(err, ErrHeld), errors.Is(err, sqlfence.ErrTokenLimit):
		return err
	}
	return fmt.Errorf("lease: acquire %q: %w", r.key, err)
}
