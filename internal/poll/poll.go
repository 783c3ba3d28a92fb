// Package poll queries a database periodically.
package poll

import (
	"context"
	"iter"
	"time"
)

// Changes yields the first result of ask, and then each result that differs from the last, until the loop is left or
// ctx ends. It waits for interval, which must be over 0, between two calls of ask. It yields each error of ask with
// the zero value.
func Changes[T any](
	ctx context.Context, interval time.Duration, ask func(context.Context) (T, error), same func(a, b T) bool,
) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var last T
		for known := false; ctx.Err() == nil; Rest(ctx, interval) {
			found, err := ask(ctx)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				var none T
				found = none
			case known && same(found, last):
				continue
			default:
				known, last = true, found
			}
			if !yield(found, err) {
				return
			}
		}
	}
}

// Rest waits for d, at most until ctx ends.
func Rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
