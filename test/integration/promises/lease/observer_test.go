package lease_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// An observer gets the events of leases in order.
func TestLeaseObserver(t *testing.T) {
	harness.EachStore(t, func(t *testing.T, b harness.Base) {
		var mu sync.Mutex
		var events []string
		observer := func(_ context.Context, e lease.Event) {
			mu.Lock()
			defer mu.Unlock()
			events = append(events, fmt.Sprintf("%v %s %d %s", e.Kind, e.Key, e.Token.Value, e.Holder))
			if e.Until.IsZero() || (e.Err != nil) != (e.Kind == lease.Lost) || e.Waited < 0 {
				t.Errorf("%+v", e)
			}
		}
		leases := harness.NewLeases(t, b.Raw(t, b.DSN(t)), lease.WithObserver(observer))
		l := harness.MustAcquire(t, leases, "jobs", lease.Resume("me"))
		if err := l.Extend(t.Context(), time.Hour); err != nil {
			t.Fatal(err)
		}
		if _, ok, err := leases.TryAcquire(t.Context(), "jobs"); ok || err != nil {
			t.Errorf("%v, %v", ok, err)
		}
		harness.MustRelease(t, l)
		l = harness.MustAcquire(t, leases, "jobs", lease.TTL(20*time.Millisecond), lease.Holder("you"))
		<-l.Done()
		want := []string{"acquired jobs 1 me", "extended jobs 1 me", "contended jobs 0 me", "released jobs 1 me", "acquired jobs 2 you", "lost jobs 2 you"}
		harness.Eventually(t, "all events", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(events) == len(want)
		})
		if events[4] == want[5] { // Lost is reported on another goroutine, after a delay
			slices.Reverse(events[4:])
		}
		if !slices.Equal(events, want) || !errors.Is(l.Err(), lease.ErrLeaseLost) {
			t.Errorf("%q, want %q", events, want)
		}
	})
}
