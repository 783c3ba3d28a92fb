package dberr

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// The pauses of [Resend]: others get on in about the time of a statement, and a crowd of
// callers is spread over many.
const (
	firstPause = time.Millisecond
	maxPause   = 250 * time.Millisecond
)

// Resend calls send, and does so again after a pause as long as it fails with an error
// that again holds for, and ctx has not ended. The pauses grow from at most 1 ms to at
// most 250 ms; see [Backoff].
//
// It returns nil, or the last error of send as it is, with that of ctx
// joined to it if ctx has ended.
func Resend(ctx context.Context, again func(error) bool, send func() error) error {
	backoff := Backoff{Pause: firstPause, Max: maxPause}
	for {
		err := Reprepared(send)
		if err == nil || !again(err) {
			return err
		}
		if backoff.Wait(ctx) != nil {
			return fmt.Errorf("%w (%w)", err, ctx.Err())
		}
	}
}

// mostHandles is how many connections of a pool may lack a prepared statement, one after the other.
const mostHandles = 8

// Reprepared calls send, and calls it again if the session lacks the prepared statement that the driver keeps for the
// text: the application may have dropped it, as by DEALLOCATE ALL. The server has executed nothing then, and the driver
// prepares the text again. send must not be a part of a transaction, because the error has ended that.
func Reprepared(send func() error) error {
	err := send()
	for n := 0; n < mostHandles && SQLState(err) == UnknownStatement; n++ {
		err = send()
	}
	return err
}

// A Backoff spaces out attempts at what others stand in the way of.
type Backoff struct {
	Pause time.Duration // the longest that the next pause may be
	Max   time.Duration // where the doubling ends
}

// Wait pauses for a random time between half of Pause and the whole, so that those who
// met don't meet again, and doubles Pause. If ctx has ended, or ends, it returns the
// cause at once.
func (b *Backoff) Wait(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(b.Pause/2 + rand.N(b.Pause/2+1))
	defer timer.Stop()
	b.Pause = min(2*b.Pause, b.Max)
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
