package lease

import (
	"context"
	"errors"
	"time"

	"github.com/sqlfence/sqlfence/internal/lost"
)

// Do acquires the lease of key as [Leases.Acquire] does, calls f with the context of the lease, and releases the
// lease when f returns or panics. Heartbeats extend the lease while f runs, and are repeated after an error until the
// lease ends by this process's clock. When the lease is lost, the context of f ends, and f must return.
//
// Errors are those of Acquire and of f. If the lease was lost before f returned, the error is also ErrLeaseLost and
// [sqlfence.ErrStale], and never context.Canceled. A failed release is logged, and the lease ends after its TTL.
func (m *Leases) Do(ctx context.Context, key string, f func(ctx context.Context) error, terms ...Term) (err error) {
	r, err := m.request(key, terms)
	if err != nil {
		return err
	}
	l, err := m.waitInLine(ctx, r)
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

// verdict returns the error of work that has failed with err, or not at all, and of the loss
// of the lease, if it was lost. The context's error is the caller's only if it was the caller's
// context that ended the work.
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

// heartbeats extends the lease in the background until stop has returned, also if ctx ends
// before.
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
	case errors.Is(err, errAnswerLost):
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

// beatOnce extends the lease. It gives up on a connection that doesn't answer within
// limit, so that the next heartbeat can use another.
func (l *Lease) beatOnce(ctx context.Context, ttl, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	stop := context.AfterFunc(l.held, cancel)
	defer stop()
	return l.Extend(ctx, ttl)
}
