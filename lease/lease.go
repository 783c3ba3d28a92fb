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

// A Lease is a key that this process holds for a limited time. It ends by
// [Lease.Release], or when it isn't extended in time. It is safe for concurrent use.
//
// A Lease knows that it has ended without asking the database: it counts by this process's
// monotonic clock, from before the request was sent. So it ends here before it ends by the server's
// clock, never after (on SQLite, where the clock has whole milliseconds, not a millisecond after),
// and also if the database can't be reached; [Margin] has it end earlier still. [Lease.Err],
// [Lease.Done] and the methods of the lease's context look at that clock when they are called, so a
// process that was stopped finds out by asking as soon as it goes on. What it does without asking
// is refused by its token.
type Lease struct {
	leases  *Leases
	info    Info
	tokens  []sqlfence.Token // its token, as a source returns it
	session *session         // of an ephemeral lease
	margin  time.Duration
	hold    time.Duration // see [MinHold]

	ctx     *leaseContext // the caller's to work with
	endCtx  context.CancelCauseFunc
	held    context.Context // until the lease ends; its cause says why
	endHeld context.CancelCauseFunc

	extending chan struct{} // holds a value while the lease is being extended

	mu       sync.Mutex
	deadline time.Time // for this process: before the server's by the margin
	expires  time.Time
	timer    *time.Timer
	lastErr  error // of the last call of Extend; nil if it succeeded
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

// A leaseContext is the context of a lease, which has ended as soon as the lease's time is
// over, also if the timer hasn't run yet.
type leaseContext struct {
	context.Context
	lease *Lease
}

// leaseKey is the key of a context's lease.
type leaseKey struct{}

// FromContext returns the lease of a context of [Lease.Context], as [Leases.Do] and [Leases.Tx] pass it on, and whether
// there is one. Of nested leases it is the innermost.
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

// Key returns the key, normalized.
func (l *Lease) Key() string { return l.info.Key }

// LockID returns the lock id, 22 characters that only the holder knows. A program that knows it can
// extend and release the lease; see [Leases.Extend] and [Leases.Release].
func (l *Lease) LockID() string { return l.info.LockID }

// Token returns the fencing token. Its Name is the key.
func (l *Lease) Token() sqlfence.Token { return l.info.Token }

// AcquiredAt returns when the lease was granted, by the server's clock.
func (l *Lease) AcquiredAt() time.Time { return l.info.AcquiredAt }

// ExpiresAt returns when the lease ends by the server's clock unless it is extended, as
// of the last answer that this Lease has got.
func (l *Lease) ExpiresAt() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.expires
}

// String says who holds which key, since when and until when, without the lock id.
func (l *Lease) String() string { return l.public().String() }

// LogValue returns String's text, so that logs don't show the lock id.
func (l *Lease) LogValue() slog.Value { return slog.StringValue(l.String()) }

// MarshalJSON returns what the lease's [Info] would be, which has no lock id in JSON.
func (l *Lease) MarshalJSON() ([]byte, error) { return json.Marshal(l.public()) }

// public returns the lease as others see it.
func (l *Lease) public() Info {
	info := l.info
	info.LockID, info.ExpiresAt = "", l.ExpiresAt()
	return info
}

// Context returns the context for work under the lease: the one that the lease was
// acquired with, with the fencing token added. It ends with that context, and when the
// lease ends; [context.Cause] is then a [*LostError], which is [ErrLeaseLost],
// or [ErrReleased]. Its deadline is that of the context that the lease was acquired
// with, because the end of the lease moves.
func (l *Lease) Context() context.Context { return l.ctx }

// Done is closed when the lease has ended. Unlike the lease's context it stays open when
// the context that the lease was acquired with ends.
func (l *Lease) Done() <-chan struct{} {
	l.expire()
	return l.held.Done()
}

// Err returns nil while the lease is held, and then the reason why it ended: a
// [*LostError], which is [ErrLeaseLost], or [ErrReleased].
func (l *Lease) Err() error {
	l.expire()
	l.mu.Lock() // so that it tells as soon as the context does
	defer l.mu.Unlock()
	return context.Cause(l.held)
}

// Extend makes the lease end ttl from now, as [Leases.Extend] does. A lease that has
// ended can't be extended: Extend then returns the error of [Lease.Err]. ttl is more than
// the lease's [Margin], or the error is [ErrInvalid]. After an error
// of the database the lease is still held, perhaps for a shorter time if ttl is
// shorter than what was left; Extend can be tried again until Done is closed.
func (l *Lease) Extend(ctx context.Context, ttl time.Duration) error {
	if err := checkTTL(ttl); err != nil {
		return err
	}
	if ttl <= l.margin {
		return invalid("a ttl of %v, want more than the margin of %v", ttl, l.margin)
	}
	// One at a time, so that the answers arrive in the order of the updates.
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
	if err == nil {
		l.expires = until
	}
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

// Release ends the lease. Of several calls the first one succeeds; the others, and a
// call after the lease was lost, return the error of [Lease.Err]. Whatever Release
// returns, this process doesn't hold the lease any more; if the database couldn't be
// reached, the lease ends there with its ttl. With [MinHold] it may end there later than now.
//
// If ctx has ended, as in a deferred Release(ctx) of a canceled request, Release returns the error of ctx at once, and
// the lease is released in the background: that is tried for 5 seconds. A program that is about to exit must pass a
// context that hasn't ended, such as [context.WithoutCancel] of ctx, or the lease may last until its ttl.
func (l *Lease) Release(ctx context.Context) error {
	l.expire()
	if !l.finish(ErrReleased) {
		return l.Err()
	}
	defer l.session.leave()
	err := l.leases.releaseAfter(ctx, l.info.LockID, l.hold)
	if errors.Is(err, ErrNotHeld) {
		l.tellLost(ctx, l.lostBefore(err))
	} else {
		l.observe(ctx, Released, err)
	}
	return err
}

// moveDeadline sets when the lease ends, its margin aside, by this process's clock; it
// is moved back only if later is set.
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

// left returns how long the lease lives unless it is extended.
func (l *Lease) left() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Until(l.deadline)
}

// expire ends the lease if its time has come: by the timer, or before the timer has run.
func (l *Lease) expire() {
	l.mu.Lock()
	left, err := time.Until(l.deadline), l.lastErr
	ended := l.held.Err() != nil
	l.mu.Unlock()
	if left <= 0 && !ended {
		l.lose("not extended in time", err)
	}
}

// lose ends the lease, unless it has ended already. The rest doesn't keep who asks waiting.
func (l *Lease) lose(reason string, err error) {
	loss := &LostError{Token: l.info.Token, Reason: reason, err: err}
	if !l.finish(loss) {
		return
	}
	go func() {
		l.tellLost(context.WithoutCancel(l.ctx.Context), loss)
		l.session.leave()
	}()
}

// lostBefore is the loss that a release finds out: a call has released the lease by its lock id, or
// its session has ended, at an unknown time.
func (l *Lease) lostBefore(err error) *LostError {
	return &LostError{Token: l.info.Token, Reason: "it had ended before its release", err: err}
}

func (l *Lease) tellLost(ctx context.Context, loss *LostError) {
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
