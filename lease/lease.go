package lease

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sqlfence/sqlfence"
)

// A Lease is a key that this process holds for a time. It ends by
// [Lease.Release], or when it has not been extended in time. It is safe for use
// by several goroutines at once.
//
// Whether it has ended is judged without asking the database, by this process's
// monotonic clock, counted from before the request was sent: so a lease ends here
// before it ends by the server's clock, never after, and also if the database
// can't be reached. A process that is stopped doesn't notice until it runs again;
// that is what the token is for.
type Lease struct {
	leases  *Leases
	info    Info
	session *heldSession // of an ephemeral lease

	ctx     context.Context // the caller's to work with
	endCtx  context.CancelCauseFunc
	held    context.Context // until the lease ends; its cause says why
	endHeld context.CancelCauseFunc

	extending chan struct{} // holds a value while the lease is being extended

	mu       sync.Mutex
	deadline time.Time
	expires  time.Time
	timer    *time.Timer
	lastErr  error // of the last try to extend it, nil if that succeeded
}

func (l *Leases) newLease(ctx context.Context, g *grant, on *heldSession) *Lease {
	le := &Lease{leases: l, info: g.Info, session: on, deadline: g.deadline, expires: g.ExpiresAt}
	le.ctx, le.endCtx = context.WithCancelCause(sqlfence.WithFence(ctx, g.Token))
	le.held, le.endHeld = context.WithCancelCause(context.Background())
	le.extending = make(chan struct{}, 1)
	le.mu.Lock() // so that expire finds the timer
	defer le.mu.Unlock()
	le.timer = time.AfterFunc(time.Until(le.deadline), le.expire)
	return le
}

// Key returns the key, normalised.
func (le *Lease) Key() string { return le.info.Key }

// LockID returns the lock id, 22 characters that only the holder knows.
func (le *Lease) LockID() string { return le.info.LockID }

// Token returns the fencing token. Its Name is the key.
func (le *Lease) Token() sqlfence.Token { return le.info.Token }

// AcquiredAt returns when the lease was granted, by the server's clock.
func (le *Lease) AcquiredAt() time.Time { return le.info.AcquiredAt }

// ExpiresAt returns when the lease ends unless it is extended, by the server's
// clock and as far as this Lease knows.
func (le *Lease) ExpiresAt() time.Time {
	le.mu.Lock()
	defer le.mu.Unlock()
	return le.expires
}

// Context returns the context to work with: that which the lease was acquired
// with, with the token as its fence. It ends with that context, and when the
// lease ends; [context.Cause] is then a [*LostError], which is [ErrLeaseLost],
// or [ErrReleased].
func (le *Lease) Context() context.Context { return le.ctx }

// Done is closed when the lease has ended, whatever becomes of the context.
func (le *Lease) Done() <-chan struct{} { return le.held.Done() }

// Err returns nil while the lease is held, then why it ended: a [*LostError],
// which is [ErrLeaseLost], or [ErrReleased].
func (le *Lease) Err() error {
	le.mu.Lock() // so that it tells as soon as the context does
	defer le.mu.Unlock()
	return context.Cause(le.held)
}

// Extend lets the lease end ttl from now, as [Leases.Extend] does. A lease that
// has ended stays so: the error is then that of [Lease.Err]. An error of the
// database leaves the lease as it is; it is worth another try until Done.
func (le *Lease) Extend(ctx context.Context, ttl time.Duration) error {
	if err := checkTTL(ttl); err != nil {
		return err
	}
	// One at a time: the order of the answers has to be that of the updates.
	select {
	case le.extending <- struct{}{}:
		defer func() { <-le.extending }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := le.Err(); err != nil {
		return err
	}
	start := time.Now()
	// The answer may get lost after the lease was made shorter.
	le.moveDeadline(start.Add(ttl), false)
	until, left, err := le.leases.extend(ctx, le.info.LockID, ttl)
	if errors.Is(err, ErrNotHeld) {
		le.lose("the database holds it no more", err)
		return le.Err()
	}
	le.mu.Lock()
	le.lastErr = err
	if err == nil {
		le.expires = until
	}
	le.mu.Unlock()
	if err != nil {
		return err
	}
	le.moveDeadline(start.Add(left), true)
	return le.Err()
}

// Release ends the lease. Of several calls one succeeds, and gives nil; the
// others give the error of [Lease.Err], as does the one that comes too late. The
// lease has ended here whatever the error; where the database couldn't be
// reached, it ends there with its ttl.
func (le *Lease) Release(ctx context.Context) error {
	if !le.finish(ErrReleased) {
		return le.Err()
	}
	defer le.session.leave()
	return le.leases.Release(ctx, le.info.LockID)
}

// moveDeadline sets when the lease ends by this process's clock; it is moved
// back only if later is set.
func (le *Lease) moveDeadline(to time.Time, later bool) {
	le.mu.Lock()
	defer le.mu.Unlock()
	if le.held.Err() != nil || !later && !to.Before(le.deadline) {
		return
	}
	le.deadline = to
	le.timer.Reset(time.Until(to))
}

// left returns how long the lease lives unless it is extended.
func (le *Lease) left() time.Duration {
	le.mu.Lock()
	defer le.mu.Unlock()
	return time.Until(le.deadline)
}

// expire ends the lease if its time has come.
func (le *Lease) expire() {
	le.mu.Lock()
	left, err := time.Until(le.deadline), le.lastErr
	if left > 0 {
		le.timer.Reset(left)
	}
	le.mu.Unlock()
	if left <= 0 {
		le.lose("not extended in time", err)
	}
}

// lose ends the lease, unless it has ended already.
func (le *Lease) lose(reason string, err error) {
	if le.finish(&LostError{Token: le.info.Token, Reason: reason, err: err}) {
		go le.session.leave()
	}
}

// finish ends the lease in this process, and reports whether it hadn't ended yet.
func (le *Lease) finish(cause error) bool {
	le.mu.Lock()
	defer le.mu.Unlock()
	if le.held.Err() != nil {
		return false
	}
	le.timer.Stop()
	le.endCtx(cause) // first, so that it has ended when Done is closed
	le.endHeld(cause)
	return true
}
