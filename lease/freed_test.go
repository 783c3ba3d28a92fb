package lease_test

import (
	"context"
	"errors"
	"testing"

	"github.com/sqlfence/sqlfence/internal/test/fakedb"
	"github.com/sqlfence/sqlfence/lease"
)

// When a lease is released, one of two attempts takes it. The answer to the other attempt may still have the row as the
// release left it. HeldError must not take the value that the release stored for a holder's name.
func TestHeldErrorDoesNotNameARelease(t *testing.T) {
	onPostgres(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		l := acquire(t, leases, "k")
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		handle := d.handle
		d.handle = func(ctx context.Context, c fakedb.Call) (fakedb.Response, error) {
			if !isAcquire(c) {
				return handle(ctx, c)
			}
			mark := d.server.leases["k"].holder
			return fakedb.Response{Rows: [][]any{{false, true, false, int64(1), mark, int64(1), int64(-1), nil, nil, nil, nil, nil, nil, false, nil}}}, nil
		}
		_, err := leases.Acquire(t.Context(), "k", lease.Retries(0))
		var held *lease.HeldError
		if !errors.As(err, &held) || held.Holder != "" || !held.Until.IsZero() {
			t.Errorf("%v; until %v", err, held.Until)
		}
	})
}
