package lease

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/lost"
)

// A Lease is a key that this process holds until [Lease.Release] or until the lease expires. The process's clock
// decides that it has expired, without the database, and at once after a pause. A Lease is safe for concurrent use.
type Lease struct {
	leases  *Leases
	info    Info
	tokens  []sqlfence.Token // the lease's token, in the form that a token source returns
	session *session         // the session of an ephemeral lease, or nil
	margin  time.Duration
	hold    time.Duration // see [MinHold]

	ctx     *leaseContext // the context that the caller works with
	endCtx  context.CancelCauseFunc
	held    context.Context // until the lease ends; its cause says why
	endHeld context.CancelCauseFunc

	extending chan struct{} // holds a value while the lease is being extended

	mu       sync.Mutex
	deadline time.Time // the lease's end for this process: earlier than the server's end, by the margin
	expires  time.Time
	timer    *time.Timer
	lastErr  error // the error of the last call of Extend; nil if that call succeeded

	late      time.Duration // the shortest TTL of the extensions without a response that may still reach the server
	lateUntil time.Time     // until when they may
}

func (m *Leases) newLease(ctx context.Context, g *grant, on *session, t *terms) *Lease {
	l := &Lease{leases: m, info: g.Info, tokens: []sqlfence.Token{g.Token}, session: on, margin: t.margin, hold: t.hold,
		deadline: g.deadline.Add(-t.margin), expires: g.ExpiresAt}
	inner, end := context.WithCancelCause(context.WithValue(sqlfence.WithFence(ctx, g.Token), leaseKey{}, l))
	l.ctx, l.endCtx = &leaseContext{inner, l}, end
	l.held, l.endHeld = context.WithCancelCause(context.Background())
	l.extending = make(chan struct{}, 1)
	l.mu.Lock() // so that expire finds the timer
	l.timer = time.AfterFunc(time.Until(l.deadline), l.expire)
	l.mu.Unlock()
	on.stands(l)
	return l
}

// A leaseContext ends with the lease's time, even if the timer hasn't run yet.
type leaseContext struct {
	context.Context
	lease *Lease
}

type leaseKey struct{}

// FromContext returns the lease of the [Leases.Do] or [Leases.Tx] that ctx is from.
func FromContext(ctx context.Context) (*Lease, bool) {
	l, ok := ctx.Value(leaseKey{}).(*Lease)
	return l, ok
}

func (c *leaseContext) Done() <-chan struct{} {
	c.lease.expire()
	return c.Context.Done()
}

func (c *leaseContext) Err() error {
	c.lease.expire()
	return c.Context.Err()
}

// Key returns the normalized key.
func (l *Lease) Key() string { return l.info.Key }

// LockID returns a secret that lets any program extend and release the lease.
func (l *Lease) LockID() string { return l.info.LockID }

// Token returns the fencing token. Its Name is the key.
func (l *Lease) Token() sqlfence.Token { return l.info.Token }

// AcquiredAt returns when the lease was granted, by the server's clock.
func (l *Lease) AcquiredAt() time.Time { return l.info.AcquiredAt }

// ExpiresAt returns the end of the lease, by the server's clock and as of the last response.
func (l *Lease) ExpiresAt() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.expires
}

func (l *Lease) String() string { return l.public().String() }

func (l *Lease) LogValue() slog.Value { return slog.StringValue(l.String()) }

func (l *Lease) MarshalJSON() ([]byte, error) { return json.Marshal(l.public()) }

func (l *Lease) public() Info {
	info := l.info
	info.LockID, info.ExpiresAt = "", l.ExpiresAt()
	return info
}

// Context returns the context of Acquire with the token. The context ends with the lease; its cause is a [*LostError]
// or [ErrReleased].
func (l *Lease) Context() context.Context { return l.ctx }

// Done returns a channel that is closed when the lease ends.
func (l *Lease) Done() <-chan struct{} {
	l.expire()
	return l.held.Done()
}

// Err returns nil while the lease is held, then a [*LostError] or [ErrReleased].
func (l *Lease) Err() error {
	l.expire()
	l.mu.Lock() // so that it tells as soon as the context does
	defer l.mu.Unlock()
	return context.Cause(l.held)
}

// Extend makes the lease end ttl from now; ttl must be within the limits of [TTL] and greater than the [Margin]. If the
// lease has ended, the error is that of [Lease.Err]. After an error of the database the lease may end sooner than ttl
// from now: repeat Extend.
func (l *Lease) Extend(ctx context.Context, ttl time.Duration) error {
	if err := checkTTL(ttl); err != nil {
		return err
	}
	if ttl <= l.margin {
		return invalid("a ttl of %v, want more than the margin of %v", ttl, l.margin)
	}
	// Extensions run one at a time, so that responses arrive in the order of the updates.
	select {
	case l.extending <- struct{}{}:
		defer func() { <-l.extending }()
	case <-ctx.Done():
		return lost.Explain(ctx, ctx.Err())
	}
	if err := l.Err(); err != nil {
		return err
	}
	start := time.Now()
	// The answer may get lost after the lease was made shorter.
	l.moveDeadline(start.Add(ttl), false)
	until, left, err := l.leases.extend(ctx, l.info.LockID, ttl)
	if errors.Is(err, ErrNotHeld) {
		l.lose("the database reports that it has ended", err)
		return l.Err()
	}
	l.mu.Lock()
	l.lastErr = err
	now := time.Now()
	if now.After(l.lateUntil) {
		l.late = maxTTL
	}
	if err == nil {
		l.expires = until
	} else {
		l.late, l.lateUntil = min(l.late, ttl), now.Add(lateLimit)
	}
	left = min(left, l.late) // a late extension may follow
	l.mu.Unlock()
	if err != nil {
		return err
	}
	l.moveDeadline(start.Add(left), true)
	if err := l.Err(); err != nil {
		return err
	}
	l.observe(ctx, Extended, nil)
	return nil
}

// Release ends the lease. Later calls, and calls after a loss, return the error of [Lease.Err]. After any error this
// process no longer holds the lease, which ends after its TTL at the latest. If ctx has ended, the lease is released in
// the background for up to 5 s.
func (l *Lease) Release(ctx context.Context) error {
	l.expire()
	if !l.finish(ErrReleased) {
		return l.Err()
	}
	defer l.session.leave()
	err := l.leases.releaseAfter(ctx, l.info.LockID, l.hold)
	if errors.Is(err, ErrNotHeld) {
		l.reportLost(ctx, l.lostBefore(err))
	} else {
		l.observe(ctx, Released, err)
	}
	return err
}

// moveDeadline sets when the lease ends by this process's clock: at the time to, less the [Margin]. If later isn't set,
// it can only move the end forward, to an earlier time.
func (l *Lease) moveDeadline(to time.Time, later bool) {
	to = to.Add(-l.margin)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held.Err() != nil || !later && !to.Before(l.deadline) {
		return
	}
	l.deadline = to
	l.timer.Reset(time.Until(to))
}

func (l *Lease) left() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Until(l.deadline)
}

// expire ends the lease if its time is over, called by the timer or before it has run.
func (l *Lease) expire() {
	l.mu.Lock()
	left, err := time.Until(l.deadline), l.lastErr
	ended := l.held.Err() != nil
	l.mu.Unlock()
	if left <= 0 && !ended {
		l.lose("not extended in time", err)
	}
}

// lose ends the lease, unless it has ended. The caller doesn't wait for observers and the session.
func (l *Lease) lose(reason string, err error) {
	loss := &LostError{Token: l.info.Token, Reason: reason, err: err}
	if !l.finish(loss) {
		return
	}
	go func() {
		l.reportLost(context.WithoutCancel(l.ctx.Context), loss)
		l.session.leave()
	}()
}

// lostBefore returns the error of a release that finds no live lease: another caller has released it by its
// [Lease.LockID], or its session has ended, at an unknown time.
func (l *Lease) lostBefore(err error) *LostError {
	return &LostError{Token: l.info.Token, Reason: "it had ended before its release", err: err}
}

func (l *Lease) reportLost(ctx context.Context, loss *LostError) {
	l.leases.log().Warn("lease: a lease was lost before its release", "key", l.info.Key, "token", l.info.Token.Value,
		"err", loss)
	l.observe(ctx, Lost, loss)
}

// finish ends the lease in this process, and reports whether it hadn't ended yet.
func (l *Lease) finish(cause error) bool {
	l.session.forget(l)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held.Err() != nil {
		return false
	}
	l.timer.Stop()
	l.endCtx(cause) // first, so that it has ended when Done is closed
	l.endHeld(cause)
	return true
}
