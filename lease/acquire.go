package lease

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/sqlfence/sqlfence"
)

// Acquire takes the lease of key, and waits while another holder has it: until ctx ends, unless [NoWait], [Timeout] or
// [Retries] limits that. The lease comes with the key's next fencing token. [Lease.Context] carries the token, so that
// writes with that context are fenced on the tables that the key guards.
//
// A free lease takes one statement, on SQLite one transaction, and on MySQL a statement and a
// transaction. If many callers of one Leases ask at once, or release, those of different keys share
// statements. A shared statement waits for no lock: a key that another transaction has locked then
// gets a statement of its own. It runs under a context that belongs to no caller. Taking a lease
// waits only for open transactions that have written under an older token to a table guarded by the
// ledger: they commit before the new token is issued. While another holder has the lease, the
// callers of one Leases wait in line. The first in line asks again after a pause, when the lease
// would end, and when a release wakes it, by this Leases or through a [Listener]. If it gets no
// answer within 100 ms, the next in line asks too, on another connection; the one after that waits
// twice as long, and so on. At most three such attempts stay unanswered at a time, and with
// [sql.DB.SetMaxOpenConns] at most as many as a quarter of the pool's connections.
//
// If ctx ends, Acquire returns at once, and what its statement may still take is released in the background. For that
// a Leases has one goroutine. It uses at most one connection, and in a pool without a spare one a quarter of its time.
// If the database can't be reached, or 1,000 such releases wait, the lease ends with its ttl. A caller that
// got no connection leaves nothing behind.
//
// Errors: [*HeldError], which is [ErrHeld], if attempts or time ran out and the last
// answer, to this call or to another in its line, was that the lease is held;
// [context.DeadlineExceeded] if time ran out without an answer; [sqlfence.ErrTokenLimit],
// with nothing written, if the key's tokens are used up; [ErrInvalid] for a bad key or
// term; the context's error; or the database's. Only serialization failures and
// deadlocks are retried.
func (m *Leases) Acquire(ctx context.Context, key string, terms ...Term) (*Lease, error) {
	r, err := m.request(key, terms)
	if err != nil {
		return nil, err
	}
	return m.waitInLine(ctx, r)
}

// TryAcquire takes the lease of key if it is free, and reports whether it did. It asks
// once: of the terms about waiting only [Timeout] has an effect, which is 5 s by default. Otherwise it works
// and fails as [Leases.Acquire] does, but for [ErrHeld], which it doesn't return.
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
	t, err := newTerms(m.defaults, list)
	if err != nil {
		return nil, invalid("%w", err)
	}
	r := &request{key: key, lockID: newLockID(), terms: t}
	if len(m.observers) > 0 {
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
