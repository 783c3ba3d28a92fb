package dberr

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// The pauses of [Resend]. The first is about the duration of a statement; later pauses spread many callers.
const (
	firstBackoff = time.Millisecond
	maxBackoff   = 250 * time.Millisecond
)

// Resend calls send, and repeats the call after a pause while send fails with an error for which again is true, and
// ctx has not ended. The pauses grow from at most 1 ms to at most 250 ms; see [Backoff].
//
// Resend returns nil or the last error of send, which also wraps the error of ctx if ctx has ended.
func Resend(ctx context.Context, again func(error) bool, send func() error) error {
	backoff := Backoff{Next: firstBackoff, Max: maxBackoff}
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

// mostHandles is how many times Reprepared repeats a call, because the next connection may lack the statement as well.
const mostHandles = 8

// Reprepared calls send, and calls send again if the session lacks the driver's prepared statement: the application
// may have dropped it, for example by DEALLOCATE ALL. The server has then executed nothing, and the driver prepares
// the SQL again. send must not be part of a transaction, because the error ends the transaction.
func Reprepared(send func() error) error {
	err := send()
	for n := 0; n < mostHandles && SQLState(err) == UnknownStatement; n++ {
		err = send()
	}
	return err
}

// A Backoff spaces out attempts that conflict with other clients.
type Backoff struct {
	Next time.Duration // the upper bound of the next pause
	Max  time.Duration // the upper bound of Next
}

// Wait pauses for a random time between half of Next and Next, so that clients that collided don't collide again,
// and doubles Next. When ctx ends, Wait returns the cause at once.
func (b *Backoff) Wait(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(b.Next/2 + rand.N(b.Next/2+1))
	defer timer.Stop()
	b.Next = min(2*b.Next, b.Max)
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
