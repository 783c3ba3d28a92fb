package lease

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Do acquires the lease of key as [Leases.Acquire] does, calls f with its
// context, and releases it when f has returned or panicked. Meanwhile it extends
// the lease to its ttl, every third of it unless [Heartbeat] says otherwise.
//
// An error of a heartbeat is not the end: it is tried again until the lease would
// end, by the clock of this process, counted from before the last successful
// request was sent. Only then, or when the database says that the lease is gone,
// is it lost: f's context ends at once, with a [*LostError] as its cause. f should
// return then; what it still writes the fence refuses as soon as a newer token has
// been issued.
//
// The error is that of f; or that of Acquire, and f was not called; or, whatever f
// returned, one that is [ErrLeaseLost] and wraps f's, if the lease was lost before
// f returned. A release that fails because the database can't be reached is
// logged: the lease ends with its ttl.
func (m *Leases) Do(ctx context.Context, key string, f func(ctx context.Context) error, terms ...Term) (err error) {
	r, err := m.request(key, terms)
	if err != nil {
		return err
	}
	l, err := m.waitInLine(ctx, r)
	if err != nil {
		return err
	}
	stopped := make(chan struct{})
	beating, stop := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(stopped)
		l.keep(beating, r.ttl, r.beat())
	}()
	defer func() {
		stop()
		<-stopped
		if lost := l.finishDo(ctx); lost != nil {
			err = errors.Join(lost, err)
		}
	}()
	return f(l.Context())
}

// releaseLimit is how long the release at the end of Do may take.
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
	case errors.Is(err, ErrNotHeld):
		// Released by its lock id, or taken away: since when nobody knows.
		return &LostError{Token: l.Token(), Reason: "gone when it was to be released", err: err}
	}
	l.leases.log().Warn("lease: a release failed; the lease ends with its ttl", "key", l.Key(), "err", err)
	return nil
}

// keep extends the lease until ctx or the lease ends.
func (l *Lease) keep(ctx context.Context, ttl, every time.Duration) {
	// An owner's lease from before may be nearly over.
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

// beatOnce extends the lease. A connection that says nothing is given up after
// the time between two heartbeats, so that another can be tried.
func (l *Lease) beatOnce(ctx context.Context, ttl, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	stop := context.AfterFunc(l.held, cancel)
	defer stop()
	if err := l.Extend(ctx, ttl); err != nil {
		return fmt.Errorf("heartbeat: %w", err)
	}
	return nil
}
