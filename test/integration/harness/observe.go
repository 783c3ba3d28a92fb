package harness

import (
	"context"
	"errors"
	"testing"

	"github.com/sqlfence/sqlfence"
)

// A Watched shop has an observer, whose events it keeps, and counts what reaches
// the base driver.
type Watched struct {
	*Shop
	Counter *Counter
	Events  []sqlfence.Event
}

// Watch opens a fresh shop with the options and an observer.
func Watch(t *testing.T, b Base, opts ...sqlfence.Option) *Watched {
	t.Helper()
	w := &Watched{Shop: NewShop(t, b)}
	opts = append(opts, sqlfence.WithObserver(func(_ context.Context, e sqlfence.Event) { w.Events = append(w.Events, e) }))
	w.DB, w.Counter = b.Counted(t, w.Source, opts...)
	return w
}

// ObserveMode is the option for Observe mode.
var ObserveMode = sqlfence.WithMode(sqlfence.Observe)

// Clear forgets what was seen, and resets the books to mark.
func (w *Watched) Clear(t *testing.T, mark int64) {
	t.Helper()
	w.Reset(t, mark)
	w.Events = nil
	w.Counter.Reset()
}

// WantEvents fails the test unless the observer got one event with the error, or no event if target is nil. An
// unguardable statement gives an event at Prepare and an event at execution.
func (w *Watched) WantEvents(t *testing.T, query string, target error) {
	t.Helper()
	if target == nil {
		if len(w.Events) != 0 {
			t.Errorf("the observer was told %v", w.Events)
		}
		return
	}
	if n := len(w.Events); n != 1 && (n != 2 || !errors.Is(target, sqlfence.ErrUnguardable)) {
		t.Errorf("the observer was told %d events: %v", n, w.Events)
	}
	for _, e := range w.Events {
		if e.Kind != sqlfence.WouldRefuse || e.Query != query || e.Reason != "" {
			t.Errorf("event = %+v", e)
		}
		WantOnly(t, e.Err, target)
	}
}
