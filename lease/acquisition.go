package lease

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sqlfence/sqlfence/internal/lost"
)

// An acquisition is a request that may need several attempts.
type acquisition struct {
	*request
	attempts int
	backoffs int      // number of pauses that no signal ended early
	last     *outcome // the outcome of the last attempt; nil before the first attempt
	unmarked int      // number of attempts in a row that couldn't ask for a notification
}

// longestBackoff bounds the backoff, and the pause of a waiter that relies on notifications.
const longestBackoff = 5 * time.Second

func (a *acquisition) exhausted() bool { return a.backoffs >= a.retries }

// sleep waits until the next attempt is due, and returns false if ctx ended before. listens reports whether the process
// listens for the notification that a release of the lease sends.
func (a *acquisition) sleep(ctx context.Context, w *waiter, listens bool) bool {
	delay, counts := a.delay(listens), true
	if a.notified > 0 && a.last != nil && !(a.last.live && a.last.notifies) {
		// The attempt couldn't request a notification of the lease's release, mostly because its holder has just
		// changed, so the next attempt follows soon. The pauses double, because the cause may also last.
		if soon := time.Millisecond<<min(a.unmarked, 30) - time.Millisecond; soon < delay {
			delay, counts = soon, false
		}
		a.unmarked++
	} else {
		a.unmarked = 0
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-w.signal:
		return true
	case <-timer.C:
		if counts {
			a.backoffs++
		}
		return true
	case <-ctx.Done():
		return false
	}
}

// longest returns an upper bound of the next pause; 0 if no pause will follow.
func (a *acquisition) longest() time.Duration {
	switch {
	case a.exhausted():
		return 0
	case a.even:
		return a.interval + a.interval/8
	}
	return longestBackoff
}

// delay returns the length of the next pause: the [Interval], or the [Backoff], or with listens the longest backoff. It
// ends at the latest when the other holder's lease expires.
func (a *acquisition) delay(listens bool) time.Duration {
	d := longestBackoff
	switch {
	case a.even:
		d = a.interval - a.interval/8 + randomly(a.interval/4)
	case !listens && a.backoffs < 32 && a.backoff<<a.backoffs > 0:
		d = min(d, a.backoff<<a.backoffs)
		d -= randomly(d / 2)
	}
	if a.last != nil && a.last.live && a.last.left.Valid {
		ends := max(0, time.Duration(a.last.left.Int64)*time.Microsecond)
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

// gaveUp returns the error of a request that has used up its time or its attempts. ctx is the caller's. If the caller
// got no response, gaveUp uses the last response to a waiter of the queue.
func (a *acquisition) gaveUp(ctx context.Context, w *waiter) error {
	if err := ctx.Err(); err != nil {
		return a.wrap(lost.Explain(ctx, err))
	}
	if a.last == nil {
		a.last = w.lastResponse()
	}
	if a.last == nil {
		return a.wrap(noResponse(context.DeadlineExceeded))
	}
	return a.heldError()
}

func (a *acquisition) heldError() error {
	e := &HeldError{Key: a.key, Attempts: a.attempts}
	if !a.last.live { // another process was faster, and the row has an earlier holder
		return e
	}
	e.Holder = shown(a.last.holder)
	if a.last.until.Valid {
		e.Until = time.UnixMicro(a.last.until.Int64)
	}
	return e
}

// failed returns the error of the request if an attempt failed with err. After the request's time limit, the error is a
// [*HeldError] with the holder of the last outcome instead.
func (a *acquisition) failed(ctx, limited context.Context, err error) error {
	// A dialer's timer may be ahead of that of limited.
	deadline, ok := limited.Deadline()
	if ctx.Err() == nil && (limited.Err() != nil || ok && !time.Now().Before(deadline)) {
		switch {
		case a.last != nil:
			return a.heldError()
		case errors.Is(err, context.DeadlineExceeded):
			err = noResponse(err)
		}
	}
	return a.wrap(err)
}

// noResponse reports a time limit: all connections are in use, or the server or a lock is slow.
func noResponse(err error) error { return fmt.Errorf("no answer from the database: %w", err) }
