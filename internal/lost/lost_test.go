package lost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
)

var errTaken = fmt.Errorf("taken over: %w", ErrStale)

// If a context has ended by a loss, the loss is the reason of any error.
func TestExplainReturnsTheLossFirst(t *testing.T) {
	ctx, end := context.WithCancelCause(context.Background())
	end(errTaken)
	child, cancel := context.WithCancel(ctx)
	defer cancel()
	for text, err := range map[string]error{
		"taken over: sqlfence: stale fencing token":                               context.Canceled,
		"taken over: sqlfence: stale fencing token: write: context canceled":      fmt.Errorf("write: %w", context.Canceled),
		"read: context canceled, taken over: sqlfence: stale fencing token":       fmt.Errorf("read: %w, %w", context.Canceled, errTaken),
		"work: taken over: sqlfence: stale fencing token":                         fmt.Errorf("work: %w", errTaken),
		"taken over: sqlfence: stale fencing token: read: i/o failed":             &net.OpError{Op: "read", Err: errors.New("i/o failed")},
		"taken over: sqlfence: stale fencing token: x: context deadline exceeded": fmt.Errorf("x: %w", context.DeadlineExceeded),
	} {
		got := Explain(child, err)
		if !errors.Is(got, errTaken) || !errors.Is(got, ErrStale) || errors.Is(got, context.Canceled) || errors.Is(got, context.DeadlineExceeded) {
			t.Errorf("Explain(%v) = %v", err, got)
		}
		var op, was *net.OpError
		if errors.As(got, &op) != errors.As(err, &was) || op != was {
			t.Errorf("Explain(%v) = %v: the error behind it is lost", err, got)
		}
		if got.Error() != text {
			t.Errorf("Explain(%v) = %v, want %s", err, got, text)
		}
	}
	if got := Explain(child, nil); got != nil {
		t.Errorf("Explain(nil) = %v", got)
	}
}

// Any other end of a context leaves an error unchanged.
func TestExplainLeavesOtherErrors(t *testing.T) {
	plain, cancel := context.WithCancel(context.Background())
	cancel()
	caused, end := context.WithCancelCause(context.Background())
	end(io.EOF)
	// A loss after the context's first end isn't the reason.
	first, cancelFirst := context.WithCancelCause(plain)
	cancelFirst(errTaken)
	for _, ctx := range []context.Context{context.Background(), plain, caused, first} {
		if got := Explain(ctx, context.Canceled); got != context.Canceled {
			t.Errorf("%v: %v", context.Cause(ctx), got)
		}
	}
}
