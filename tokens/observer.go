package tokens

import (
	"context"
	"slices"
	"time"

	"github.com/sqlfence/sqlfence"
)

// An Observer receives an event for each call of [Store.Issue] and [Store.IssueMany], for metrics and traces.
// It runs synchronously, on the goroutine of the call. It must be safe for concurrent use, must return soon
// and must not panic. ctx is the context of the call. Calls with an invalid name cause no event.
type Observer func(ctx context.Context, e Event)

// An Event is what an [Observer] receives. It must not be changed.
type Event struct {
	// Names are those that the call was for, normalized.
	Names []string
	// Tokens are those that it got, in the order of the names; none with an error.
	Tokens []sqlfence.Token
	// Duration is the time from the call to its end.
	Duration time.Duration
	// Calls is how many calls the statement has served, this one included: more than one where [Store.Issue] has
	// coalesced them. It is 0 where the call has ended before its statement.
	Calls int
	// Err is the error that the call returns, or nil.
	Err error
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
