package tokens

import (
	"context"
	"slices"
	"time"

	"github.com/sqlfence/sqlfence"
)

// An Observer receives an event for each call of [Store.Issue] and [Store.IssueMany] with valid names, for metrics
// and traces. It runs on the goroutine of the call, with its context. It must be safe for concurrent use, must return
// soon and must not panic.
type Observer func(ctx context.Context, e Event)

// An Event is a call that an [Observer] receives. It must not be changed.
type Event struct {
	Names    []string         // normalized
	Tokens   []sqlfence.Token // in the order of the names; none with an error
	Duration time.Duration    // from the call to its end
	Calls    int              // calls that shared the statement; 0 if the call ended before its statement
	Err      error
}

func (s *Store) observe(ctx context.Context, began time.Time, e Event) {
	if len(s.observers) == 0 {
		return
	}
	e.Duration, e.Tokens = time.Since(began), slices.Clone(e.Tokens)
	for _, observe := range s.observers {
		observe(ctx, e)
	}
}
