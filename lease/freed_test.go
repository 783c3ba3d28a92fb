package lease_test

import (
	"context"
	"errors"
	"testing"

	"github.com/sqlfence/sqlfence/internal/fakedb"
	"github.com/sqlfence/sqlfence/lease"
)

// Of two attempts at a lease that was just released one is faster. The other's answer
// still has what the release left in the row, which is nobody's name.
func TestHeldErrorDoesNotNameARelease(t *testing.T) {
	onPostgres(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		l := acquire(t, leases, "k")
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		handle := d.handle
		d.handle = func(ctx context.Context, c fakedb.Call) (fakedb.Answer, error) {
			if !isAcquire(c) {
				return handle(ctx, c)
			}
			mark := d.server.leases["k"].holder
			return fakedb.Answer{Rows: [][]any{{false, true, false, int64(1), mark, int64(1), int64(-1), nil, nil, nil, nil, nil, nil, false, nil}}}, nil
		}
		_, err := leases.Acquire(t.Context(), "k", lease.Retries(0))
		var held *lease.HeldError
		if !errors.As(err, &held) || held.Holder != "" || !held.Until.IsZero() {
			t.Errorf("%v; until %v", err, held.Until)
		}
	})
}
