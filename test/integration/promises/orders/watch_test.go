package orders_test

import (
	"context"
	"testing"
)

// A watch queries a database for waiting sessions on behalf of all concurrent orders. A result goes to the callers that
// asked before the query was sent.
type watch struct {
	ask chan chan seen
}

type seen struct {
	waits map[int]waiter
	err   error
}

// newWatch returns nil if no session waits in the database.
func (d *database) newWatch(t *testing.T, p *place) *watch {
	if d.waits == nil {
		return nil
	}
	ctx, conn := t.Context(), one(d.Raw(t, p.dsn))
	w := &watch{ask: make(chan chan seen, 64)}
	go func() {
		for {
			var asking []chan seen
			select {
			case a := <-w.ask:
				asking = append(asking, a)
			case <-ctx.Done():
				return
			}
			for more := true; more; {
				select {
				case a := <-w.ask:
					asking = append(asking, a)
				default:
					more = false
				}
			}
			waits, err := d.waits(ctx, conn)
			for _, a := range asking {
				a <- seen{waits, err}
			}
		}
	}()
	return w
}

// waiting returns the sessions that wait at some time after the call.
func (w *watch) waiting(ctx context.Context) (map[int]waiter, error) {
	answer := make(chan seen, 1)
	select {
	case w.ask <- answer:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	select {
	case s := <-answer:
		return s.waits, s.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
