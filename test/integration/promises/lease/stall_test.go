package lease_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// callers is how many callers try to take leases at a time. A short run runs beside others, and has fewer, so that they
// are answered within their deadlines.
func callers() int {
	if testing.Short() {
		return 10
	}
	return 50
}

// A crowd of callers with short deadlines tries to take leases of keys of their own, again and again.
type crowd struct {
	granted atomic.Int64
	stop    context.CancelFunc
	all     sync.WaitGroup
}

func newCrowd(t *testing.T, leases *lease.Leases) *crowd {
	ctx, stop := context.WithCancel(t.Context())
	c := &crowd{stop: stop}
	for i := range callers() {
		c.all.Go(func() {
			for ctx.Err() == nil {
				limited, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
				l, ok, _ := leases.TryAcquire(limited, fmt.Sprint("crowd/", i))
				cancel()
				if ok {
					c.granted.Add(1)
					_ = l.Release(context.WithoutCancel(ctx))
				}
			}
		})
	}
	return c
}

// rate returns how many leases are granted in a second.
func (c *crowd) rate() int64 {
	const window = 500 * time.Millisecond
	before := c.granted.Load()
	time.Sleep(window)
	return (c.granted.Load() - before) * int64(time.Second/window)
}

// A network that stands still for a while leaves nothing behind: soon after it leases are granted as before,
// a query is answered, there are as many goroutines and sessions as before, and a holder with heartbeats still holds its
// lease. No token is issued for a caller that had gone, but for those with a statement under way.
func TestLeasesAfterANetworkThatStoodStill(t *testing.T) {
	stalls := []time.Duration{time.Second, 5 * time.Second, 30 * time.Second}
	if testing.Short() {
		stalls = stalls[:1]
	}
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if !b.Networked() {
			t.Skip("there is no network")
		}
		for _, stall := range stalls {
			for _, pool := range []int{1, 10} {
				t.Run(fmt.Sprintf("%v, %d connections", stall, pool), func(t *testing.T) { standStill(t, b, stall, pool) })
			}
		}
	})
}

func standStill(t *testing.T, b harness.Base, stall time.Duration, pool int) {
	dsn := b.DSN(t)
	admin := b.Raw(t, dsn)
	harness.NewLeases(t, admin)
	network := harness.NewStall(t, dsn)
	db := b.Raw(t, network.DSN)
	db.SetMaxOpenConns(pool)
	leases, err := lease.New(db)
	if err != nil {
		t.Fatal(err)
	}
	held := make(chan error, 1)
	end := make(chan struct{})
	holding := make(chan struct{})
	go func() {
		held <- leases.Do(t.Context(), "held", func(ctx context.Context) error {
			close(holding)
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-end:
				return nil
			}
		}, lease.TTL(3*stall))
	}()
	<-holding
	c := newCrowd(t, leases)
	defer c.stop()
	time.Sleep(200 * time.Millisecond)
	rate := c.rate()
	goroutines, sessions := runtime.NumGoroutine(), countSessions(t, b, admin)

	network.Begin()
	time.Sleep(stall)
	most := runtime.NumGoroutine()
	network.End()
	began := time.Now()
	var one int
	if err := db.QueryRow("SELECT 1").Scan(&one); err != nil {
		t.Errorf("a query after it: %v", err)
	}
	answered := time.Since(began)
	var after int64
	harness.Eventually(t, "leases are granted as before", func() bool { after = c.rate(); return after >= rate/2 })
	recovered := time.Since(began)
	harness.Eventually(t, "goroutines and sessions are as many as before", func() bool {
		return runtime.NumGoroutine() <= goroutines+50 && countSessions(t, b, admin) <= sessions+50
	})
	t.Logf("%d grants a second, then %d; SELECT 1 after %v, grants after %v, the rest after %v; goroutines %d, at most %d",
		rate, after, answered.Round(time.Millisecond), recovered.Round(time.Millisecond), time.Since(began).Round(time.Millisecond), goroutines, most)
	if most > goroutines+3*callers()+50 {
		t.Errorf("%d goroutines in it, %d before", most, goroutines)
	}
	c.stop()
	c.all.Wait()
	close(end)
	if err := <-held; err != nil {
		t.Errorf("the holder with a ttl of three times that: %v", err)
	}
	var issued int64
	if err := admin.QueryRow("SELECT SUM(token) FROM fencing_tokens WHERE name LIKE 'crowd/%'").Scan(&issued); err != nil {
		t.Fatal(err)
	}
	granted := c.granted.Load()
	t.Logf("%d tokens for %d grants", issued, granted)
	if most := granted + granted/10 + int64(callers()+2*pool); issued > most {
		t.Errorf("%d tokens for %d grants: more than statements that were under way", issued, granted)
	}
}

// countSessions returns how many sessions the server has, for the test's database.
func countSessions(t *testing.T, b harness.Base, db *sql.DB) (n int) {
	t.Helper()
	query := "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
	if b.Dialect == sqlfence.MySQL {
		query = "SELECT count(*) FROM information_schema.processlist WHERE db = DATABASE()"
	}
	if err := db.QueryRow(query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Callers that get no connection in time leave nothing behind: no goroutine, and no token.
func TestLeaseAttemptsWithoutAConnection(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		db := b.Raw(t, b.DSN(t))
		leases := harness.NewLeases(t, db)
		harness.MustRelease(t, harness.MustAcquire(t, leases, "jobs"))
		db.SetMaxOpenConns(1)
		busy, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		goroutines := runtime.NumGoroutine()
		for i := range 2000 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			if _, ok, err := leases.TryAcquire(ctx, fmt.Sprint("jobs/", i)); ok || !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("%v, %v, without a connection", ok, err)
			}
			cancel()
		}
		harness.Eventually(t, "as many goroutines as before", func() bool { return runtime.NumGoroutine() <= goroutines+5 })
		if err := busy.Close(); err != nil {
			t.Fatal(err)
		}
		l := harness.MustAcquire(t, leases, "jobs") // behind what would wait
		harness.WantToken(t, l, "jobs", 2)
		var names int
		if err := db.QueryRow("SELECT count(*) FROM fencing_tokens WHERE name LIKE 'jobs/%'").Scan(&names); err != nil {
			t.Fatal(err)
		}
		if names > 0 {
			t.Errorf("%d tokens for callers that had gone", names)
		}
	})
}
