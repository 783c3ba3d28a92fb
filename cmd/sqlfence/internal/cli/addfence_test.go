package cli

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// A timeout names the flag for a longer wait; an interrupt doesn't.
func TestWithinSaysWhatToDo(t *testing.T) {
	wait := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	err := within(t.Context(), time.Millisecond, wait)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "--timeout, which is 1ms") {
		t.Errorf("after the limit: %v", err)
	}
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	if err := within(interrupted, time.Hour, wait); err == nil || strings.Contains(err.Error(), "--timeout") {
		t.Errorf("interrupted: %v", err)
	}
}
