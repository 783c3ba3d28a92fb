package lease

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/lost"
)

// Do acquires the lease of key as [Leases.Acquire] does, and calls f with the lease's context. It extends the lease
// while f runs, and releases it when f returns or panics. If the lease is lost, the context ends, and f must return.
//
// Errors are those of Acquire and of f. After a loss, the error is also ErrLeaseLost and [sqlfence.ErrStale], and never
// context.Canceled. A failed release is logged.
func (m *Leases) Do(ctx context.Context, key string, f func(ctx context.Context) error, terms ...Term) (err error) {
	r, err := m.request(key, terms)
	if err != nil {
		return err
	}
	l, err := m.waitInQueue(ctx, r)
	if err != nil {
		return err
	}
	stop := l.heartbeats(ctx, r)
	defer func() {
		stop()
		err = l.verdict(ctx, l.finishDo(ctx), err)
	}()
	return f(l.Context())
}

// Tx is [Leases.Do] with a transaction that commits only if no other process has taken over, whatever f executes (see
// [tokens.Store.Hold]). Tx needs no registered table. Heartbeats need a second connection.
//
// After a temporary error, such as a deadlock, Tx runs f again in a new transaction. So f must have no effects outside
// of the transaction, must not end it, must return the errors of its statements, and must roll back only to its own
// savepoints. DDL and TRUNCATE end a transaction on MySQL and MariaDB.
//
// After a loss, the transaction is rolled back and the error is [sqlfence.ErrStale]. Without a response to COMMIT it is
// [sqlfence.ErrUnknownOutcome]. After a COMMIT that succeeded Tx returns nil, even if the lease has ended meanwhile.
func (m *Leases) Tx(
	ctx context.Context, key string, f func(ctx context.Context, tx *sql.Tx) error, terms ...Term,
) error {
	committed := false
	err := m.Do(ctx, key, func(ctx context.Context) error {
		l, _ := FromContext(ctx)
		err := sqlfence.Retry(ctx, m.db, sqlfence.RetryOptions{}, func(ctx context.Context, tx *sql.Tx) error {
			if err := m.ledger.Hold(ctx, tx, l.Token()); err != nil {
				return err
			}
			return f(ctx, tx)
		})
		committed = err == nil
		return err
	}, terms...)
	if committed { // by the lock of Hold no other process had taken over
		return nil
	}
	return err
}

// verdict returns the error of Do: err, the error of f, joined with loss, the loss of the lease or nil. If the loss,
// and not the caller's ctx, has ended f, the result is no context.Canceled.
func (l *Lease) verdict(ctx context.Context, loss, err error) error {
	switch {
	case loss == nil:
		return lost.Explain(ctx, err)
	case ctx.Err() == nil || errors.Is(context.Cause(l.Context()), ErrLeaseLost):
		return lost.Because(loss, err)
	case errors.Is(err, loss):
		return err
	}
	return errors.Join(loss, err)
}

// heartbeats extends the lease in the background until stop has returned, even after ctx has ended.
func (l *Lease) heartbeats(ctx context.Context, r *request) (stop func()) {
	stopped := make(chan struct{})
	beating, cancel := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(stopped)
		l.keep(beating, r.ttl, r.beat())
	}()
	return func() {
		cancel()
		<-stopped
	}
}

// releaseLimit is how long the release at the end of Do may take, and one in the background.
const releaseLimit = 5 * time.Second

// finishDo releases the lease, and returns an error if it was lost before.
func (l *Lease) finishDo(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseLimit)
	defer cancel()
	err := l.Release(ctx)
	switch {
	case err == nil, errors.Is(err, ErrReleased): // by f itself
		return nil
	case errors.Is(err, ErrLeaseLost):
		return err
	case errors.Is(err, errResponseLost):
		// Most likely it was held to the end: it was by this process's clock.
		l.leases.log().Warn("lease: the answer to a release was lost, and the lease has ended", "key", l.Key())
		return nil
	case errors.Is(err, ErrNotHeld):
		return l.lostBefore(err)
	}
	l.leases.log().Warn("lease: a release failed; the lease ends with its ttl", "key", l.Key(), "err", err)
	return nil
}

// keep extends the lease until ctx or the lease ends.
func (l *Lease) keep(ctx context.Context, ttl, every time.Duration) {
	// A lease that was resumed may be nearly over.
	next := time.NewTimer(min(every, l.left()/3))
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.Done():
			return
		case <-next.C:
		}
		pause := every
		if err := l.beatOnce(ctx, ttl, every); err != nil {
			pause = min(every/4, time.Second) // transient, or the lease is done
		}
		next.Reset(pause)
	}
}

// beatOnce extends the lease. It gives up after limit, so the next heartbeat can use a new connection.
func (l *Lease) beatOnce(ctx context.Context, ttl, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	stop := context.AfterFunc(l.held, cancel)
	defer stop()
	return l.Extend(ctx, ttl)
}
