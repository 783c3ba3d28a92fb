package lease_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence/internal/test/fakedb"
	"github.com/sqlfence/sqlfence/lease"
)

// Watch yields each change once, including no leader, and the same leader with a new token.
func TestWatchYieldsEachChangeOnce(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		ctx, cancel := context.WithCancel(t.Context())
		var seen []string
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for leader, err := range leases.Watch(ctx, "jobs", time.Second) {
				seen = append(seen, fmt.Sprintf("%s %d %v", leader.Holder, leader.Token.Value, errors.Is(err, errLost)))
			}
		}()
		wait := func() { time.Sleep(3*time.Second + time.Millisecond) }
		wait()
		first := acquire(t, leases, "jobs", lease.Resume("a"), lease.TTL(time.Hour))
		wait()
		release(t, first)
		second := acquire(t, leases, "jobs", lease.Resume("a"), lease.TTL(time.Hour))
		wait()
		d.failing(func(context.Context, fakedb.Call) error { return errLost })
		time.Sleep(2 * time.Second)
		d.failing(nil)
		wait()
		release(t, second)
		wait()
		cancel()
		<-ended
		if want := []string{" 0 false", "a 1 false", "a 2 false", " 0 true", " 0 true", " 0 false"}; !slices.Equal(seen, want) {
			t.Errorf("seen %q, want %q", seen, want)
		}
		for range leases.Watch(t.Context(), "jobs", time.Second) {
			break
		}
		for _, bad := range []struct {
			key      string
			interval time.Duration
		}{{"", time.Second}, {"jobs", 0}} {
			n := 0
			for _, err := range leases.Watch(t.Context(), bad.key, bad.interval) {
				if n++; !errors.Is(err, lease.ErrInvalid) {
					t.Errorf("%v: %v", bad, err)
				}
			}
			if n != 1 {
				t.Errorf("%v: %d errors", bad, n)
			}
		}
	})
}
