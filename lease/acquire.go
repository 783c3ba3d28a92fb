package lease

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/sqlfence/sqlfence"
)

// Acquire takes the lease of key. While another holder has the lease, Acquire waits until ctx ends, unless a term
// limits the wait. A lease that the database grants after ctx has ended is released in the background, or ends after
// its TTL.
//
// Errors: [*HeldError] if a term limited the wait; [context.DeadlineExceeded] if the database didn't respond within
// the time limit; [sqlfence.ErrTokenLimit] if the tokens of the key are used up; [ErrInvalid]; [ErrNoSessions]; or
// the error of ctx or of the database. Acquire repeats only serialization failures and deadlocks.
func (m *Leases) Acquire(ctx context.Context, key string, terms ...Term) (*Lease, error) {
	r, err := m.request(key, terms)
	if err != nil {
		return nil, err
	}
	return m.waitInLine(ctx, r)
}

// TryAcquire makes one attempt, and reports whether it succeeded instead of returning ErrHeld. [Timeout] limits the
// attempt, by default to 5 s; other terms about waiting have no effect. Other errors are those of [Leases.Acquire].
func (m *Leases) TryAcquire(ctx context.Context, key string, terms ...Term) (lease *Lease, ok bool, err error) {
	r, err := m.request(key, terms)
	if err != nil {
		return nil, false, err
	}
	if !r.timed {
		r.limit = answerLimit
	}
	limited, cancel := r.limited(ctx)
	defer cancel()
	lease, _, err = m.ask(ctx, limited, &acquisition{request: r})
	return lease, lease != nil, err
}

// waitInLine asks whenever it is this request's turn, until the lease is taken or
// attempts or time run out.
func (m *Leases) waitInLine(ctx context.Context, r *request) (*Lease, error) {
	limited, cancel := r.limited(ctx)
	defer cancel()
	a := acquisition{request: r}
	// A caller that resumes may hold the lease already, and must not wait for callers that wait
	// for its release.
	if r.resumes && m.queues.busy(r.key) {
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
		if m.listener.listener != nil {
			a.notified = a.longest()
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

// A request holds the arguments of one call.
type request struct {
	key, lockID string
	*terms
	session sql.NullInt64
	began   time.Time // for observers
	// notified is how long the attempt is going to wait for a notification; 0: it isn't.
	notified time.Duration
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

// limited returns ctx with the limit of the request.
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
