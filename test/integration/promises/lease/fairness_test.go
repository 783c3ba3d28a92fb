package lease_test

import (
	"sync"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// Leases in different processes have no order, but each process should get its turn. The test logs how often each of
// four Leases, which stand for processes, got a contended key.
func TestLeaseFairness(t *testing.T) {
	harness.EachStore(t, func(t *testing.T, b harness.Base) {
		dsn := quickDSN(b, b.DSN(t))
		ways := []string{"polling"}
		if listeners[b.Name] != nil {
			ways = append(ways, "listening")
		}
		harness.NewLeases(t, b.Raw(t, dsn))
		for _, way := range ways {
			const total, processes, callers = 100, 4, 4
			var mu sync.Mutex
			var won [processes]int
			left := total
			var wg sync.WaitGroup
			for p := range processes {
				var opts []lease.Option
				if way == "listening" {
					opts = append(opts, lease.WithListener(listeners[b.Name](dsn)))
				}
				leases := harness.NewLeases(t, b.Raw(t, dsn), opts...)
				for range callers {
					wg.Go(func() {
						for {
							l, err := leases.Acquire(t.Context(), way, lease.Timeout(harness.Patience), lease.Interval(10*time.Millisecond))
							if err != nil {
								t.Error(err)
								return
							}
							mu.Lock()
							more := left > 0
							if more {
								won[p]++
								left--
							}
							mu.Unlock()
							if err := l.Release(t.Context()); err != nil || !more {
								if err != nil {
									t.Error(err)
								}
								return
							}
						}
					})
				}
			}
			wg.Wait()
			t.Logf("%s: %d leases went to the four as %v", way, total, won)
		}
	})
}
