package lease

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

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
func (l *Leases) Acquire(ctx context.Context, key string, terms ...Term) (*Lease, error) {
	r, err := l.request(key, terms)
	if err != nil {
		return nil, err
	}
	return l.acquire(ctx, r)
}

// TryAcquire takes the lease of key if it is free: ok tells whether it was. It
// asks once; terms on waiting, other than the timeout, have no effect. See
// [Leases.Acquire] for the rest, and for the errors, without [ErrHeld].
func (l *Leases) TryAcquire(ctx context.Context, key string, terms ...Term) (lease *Lease, ok bool, err error) {
	r, err := l.request(key, terms)
	if err != nil {
		return nil, false, err
	}
	limited, cancel := r.limited(ctx)
	defer cancel()
	lease, _, err = l.try(ctx, limited, r)
	return lease, lease != nil, r.wrap(err)
}

func (l *Leases) request(key string, list []Term) (*request, error) {
	key, err := NormalizeKey(key)
	if err != nil {
		return nil, err
	}
	t, err := newTerms(l.defaults, list)
	if err != nil {
		return nil, err
	}
	return &request{key: key, lockID: newLockID(), terms: t}, nil
}

func (l *Leases) acquire(ctx context.Context, r *request) (*Lease, error) {
	limited, cancel := r.limited(ctx)
	defer cancel()
	w := waiter{request: r}
	// An owner may hold the lease already, and must not wait for those who wait
	// for its release.
	if r.owner != "" && l.lines.busy(r.key) {
		if lease, _, err := l.tryOnce(ctx, limited, &w); lease != nil || err != nil {
			return lease, err
		}
	}
	p := l.lines.join(r.key)
	defer p.leave()
	ask := func() (*Lease, error) {
		p.asks()
		lease, o, err := l.tryOnce(ctx, limited, &w)
		p.answered(o)
		return lease, err
	}
	if !p.await(limited) {
		return nil, w.gaveUp(ctx, p)
	}
	if lease, err := ask(); lease != nil || err != nil {
		return lease, err
	}
	if !w.exhausted() {
		l.hearing.enter()
		defer l.hearing.leave()
	}
	for !w.exhausted() {
		if !w.pause(limited, p, l.hearing.on.Load() > 0) || !p.await(limited) {
			return nil, w.gaveUp(ctx, p)
		}
		if lease, err := ask(); lease != nil || err != nil {
			return lease, err
		}
	}
	return nil, w.held()
}

// tryOnce is try, with what it came to noted by w.
func (l *Leases) tryOnce(ctx, limited context.Context, w *waiter) (*Lease, *outcome, error) {
	w.attempts++
	lease, o, err := l.try(ctx, limited, w.request)
	if err != nil && ctx.Err() == nil && limited.Err() != nil && w.last != nil {
		return nil, nil, w.held() // the last answer was that it is held
	}
	if o != nil {
		w.last = o
	}
	return lease, o, w.wrap(err)
}

// try asks once. The lease is nil if another holds it.
func (l *Leases) try(ctx, limited context.Context, r *request) (*Lease, *outcome, error) {
	for {
		var on *heldSession
		if r.ephemeral && l.dialect == sqlfence.Postgres {
			var err error
			if on, err = l.session.enter(limited); err != nil {
				return nil, nil, err
			}
			r.session.Int64, r.session.Valid = on.id, true
		}
		o, err := l.attempt(limited, r)
		if err == nil && o.won != nil {
			l.warn(o.won.Token)
			if !o.won.Ephemeral {
				on.leave() // the owner's lease from before needs none
				on = nil
			}
			return l.newLease(ctx, o.won, on), o, nil
		}
		if err == nil && !o.session {
			on.lost()
			on.leave()
			continue
		}
		on.leave()
		return nil, o, err
	}
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

// A waiter is a request that may have to ask several times.
type waiter struct {
	*request
	attempts int
	pauses   int      // that went to their end
	last     *outcome // nil before the first answer
}

// longestPause bounds the back-off, and the time until a waiter asks again that
// relies on being woken.
const longestPause = 5 * time.Second

// exhausted reports whether the attempts have run out.
func (w *waiter) exhausted() bool {
	if w.waits {
		return w.limit == 0
	}
	return w.pauses >= w.retries
}

// pause waits until it is time to ask again, or returns false if ctx has ended.
func (w *waiter) pause(ctx context.Context, p *place, hears bool) bool {
	timer := time.NewTimer(w.delay(hears))
	defer timer.Stop()
	select {
	case <-p.woken:
		return true
	case <-timer.C:
		w.pauses++
		return true
	case <-ctx.Done():
		return false
	}
}

// delay returns how long to pause, at the most until the lease in the way ends.
func (w *waiter) delay(hears bool) time.Duration {
	d := longestPause
	switch {
	case w.waits:
		d = w.interval - w.interval/8 + randomly(w.interval/4)
	case !hears && w.pauses < 32 && w.backoff<<w.pauses > 0:
		d = min(d, w.backoff<<w.pauses)
		d -= randomly(d / 2)
	}
	if w.last != nil && w.last.live && w.last.left.Valid {
		ends := max(0, time.Duration(w.last.left.Int64)*time.Microsecond)
		d = min(d, ends+time.Millisecond+randomly(5*time.Millisecond))
	}
	return d
}

func randomly(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return rand.N(d)
}

// gaveUp is the error when the time is over: ctx is the caller's. Whoever has had no
// answer yet goes by that of another in the line.
func (w *waiter) gaveUp(ctx context.Context, p *place) error {
	if err := ctx.Err(); err != nil {
		return w.wrap(err)
	}
	if w.last == nil {
		w.last = p.heard()
	}
	if w.last == nil {
		return w.wrap(fmt.Errorf("no answer from the database: %w", context.DeadlineExceeded))
	}
	return w.held()
}

func (w *waiter) held() error {
	e := &HeldError{Key: w.key, Attempts: w.attempts, Holder: w.last.holder}
	if w.last.until.Valid {
		e.Until = time.UnixMicro(w.last.until.Int64)
	}
	return e
}

// warn logs a token that is near the end of the range.
func (l *Leases) warn(token sqlfence.Token) {
	if token.Value >= sqlfence.WarnToken {
		l.log().Warn("lease: fencing tokens are running out",
			"name", token.Name, "token", token.Value, "limit", int64(sqlfence.MaxToken))
	}
}
