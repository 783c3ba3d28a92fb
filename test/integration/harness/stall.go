package harness

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A Stall stands before the server. While it is on, nothing passes in either direction, and all connections stay open:
// the network stands still. Afterwards what was sent arrives.
type Stall struct {
	DSN string // through it

	mu sync.Mutex
	on chan struct{} // closed when the stall ends; nil while everything passes

	passing atomic.Int64 // goroutines of the Stall itself: during a stall they stay, with connections that are closed
}

// NewStall starts a Stall before the server of dsn.
func NewStall(t *testing.T, dsn string) *Stall {
	t.Helper()
	s := new(Stall)
	s.DSN = Relay(t, dsn, func(client, server net.Conn) {
		s.passing.Add(2)
		go func() {
			defer s.passing.Add(-1)
			Pass(server, client, s.wait)
		}()
		defer s.passing.Add(-1)
		Pass(client, server, s.wait)
	})
	return s
}

// goroutines returns the number of goroutines without the Stall's, and without an equal number of a driver's goroutines
// that close connections.
func (s *Stall) goroutines() int { return runtime.NumGoroutine() - 2*int(s.passing.Load()) }

// Begin stops the network.
func (s *Stall) Begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on = make(chan struct{})
}

// End lets everything pass.
func (s *Stall) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.on)
	s.on = nil
}

func (s *Stall) wait([]byte) {
	s.mu.Lock()
	on := s.on
	s.mu.Unlock()
	if on != nil {
		<-on
	}
}

// Callers returns the number of concurrent callers of [Stall.StandStill]. A short run shares the machine with other
// tests, and has fewer callers, so that calls finish within their deadlines.
func Callers() int {
	if testing.Short() {
		return 10
	}
	return 50
}

// StandStill stops the network of db for a time, while callers with short deadlines try again and again. use
// returns the call for a database, which reports its success. After the stall the callers must succeed about as often
// as concurrent callers of a new pool, since the machine may be busier than before. A query must succeed, and the
// numbers of goroutines and sessions must be about the same as before. admin bypasses the network. StandStill returns
// the number of successful calls.
func (s *Stall) StandStill(
	t *testing.T, b Base, admin, db *sql.DB, stall time.Duration, use func(db *sql.DB) (try func(ctx context.Context, caller int) bool),
) (succeeded int64) {
	t.Helper()
	deadline := s.deadline(t, b)
	crowd := newCrowd(t.Context(), 0, deadline, use(db))
	defer crowd.leave()
	Eventually(t, "the callers succeed", func() bool { return crowd.succeeded.Load() > 20 })
	goroutines, sessions := s.goroutines(), b.sessions(t, admin)

	s.Begin()
	time.Sleep(stall)
	most := s.goroutines()
	s.End()
	began := time.Now()
	var one int
	if err := db.QueryRow("SELECT 1").Scan(&one); err != nil {
		t.Errorf("a query after it: %v", err)
	}
	answered := time.Since(began)
	fresh := b.Raw(t, s.DSN)
	fresh.SetMaxOpenConns(db.Stats().MaxOpenConnections)
	others := newCrowd(t.Context(), Callers(), deadline, use(fresh))
	defer others.leave()
	var here, there int64
	Eventually(t, "the callers succeed as often as those of a new pool", func() bool {
		here, there = crowd.succeeded.Load(), others.succeeded.Load()
		time.Sleep(500 * time.Millisecond)
		here, there = crowd.succeeded.Load()-here, others.succeeded.Load()-there
		return here > 0 && here >= there/2
	})
	recovered := time.Since(began)
	others.leave()
	_ = fresh.Close()
	Eventually(t, "goroutines and sessions are as many as before", func() bool {
		return s.goroutines() <= goroutines+50 && b.sessions(t, admin) <= sessions+50
	})
	t.Logf("%d, and %d of a new pool; SELECT 1 after %v, as often after %v, the rest after %v; %d goroutines, at most %d",
		here, there, answered.Round(time.Millisecond), recovered.Round(time.Millisecond), time.Since(began).Round(time.Millisecond),
		goroutines, most)
	if most > goroutines+3*Callers()+50 {
		t.Errorf("%d goroutines in it, %d before", most, goroutines)
	}
	crowd.leave()
	return crowd.succeeded.Load() + others.succeeded.Load()
}

// A crowd is callers that try again and again.
type crowd struct {
	succeeded atomic.Int64
	stop      context.CancelFunc
	callers   sync.WaitGroup
}

// deadline returns how long a caller of [Stall.StandStill] waits: 100 ms, or longer where new connections take long.
// A call that ends at its deadline costs its connection, so if a call didn't last as long as all callers need to
// connect at once, no call would ever succeed again.
func (s *Stall) deadline(t *testing.T, b Base) time.Duration {
	t.Helper()
	began := time.Now()
	const connections = 5
	for range connections {
		db := b.Raw(t, s.DSN)
		if err := db.PingContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		_ = db.Close()
	}
	return max(100*time.Millisecond, 2*time.Duration(Callers())*time.Since(began)/connections)
}

// newCrowd starts the callers, which are numbered from first.
func newCrowd(
	ctx context.Context, first int, deadline time.Duration, try func(ctx context.Context, caller int) bool,
) *crowd {
	c := new(crowd)
	ctx, c.stop = context.WithCancel(ctx)
	const pace = 10 * time.Millisecond // callers that don't rest measure how fast the machine is
	for i := range Callers() {
		c.callers.Go(func() {
			for ctx.Err() == nil {
				limited, cancel := context.WithTimeout(ctx, deadline)
				if try(limited, first+i) {
					c.succeeded.Add(1)
				}
				cancel()
				time.Sleep(pace)
			}
		})
	}
	return c
}

// leave ends the callers.
func (c *crowd) leave() {
	c.stop()
	c.callers.Wait()
}

// sessions returns how many sessions the server has in the database of db.
func (b Base) sessions(t testing.TB, db *sql.DB) (n int) {
	t.Helper()
	if err := db.QueryRow(b.dialect(t).sessions).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// EachStall runs test on the drivers that go over a network, for stalls of several lengths and pools of several sizes.
func EachStall(t *testing.T, test func(t *testing.T, b Base, stall time.Duration, pool int)) {
	t.Helper()
	stalls := []time.Duration{time.Second, 5 * time.Second, 30 * time.Second}
	if testing.Short() {
		stalls = stalls[:1]
	}
	EachBase(t, func(t *testing.T, b Base) {
		if !b.Networked() {
			t.Skip("there is no network")
		}
		for _, stall := range stalls {
			for _, pool := range []int{1, 10} {
				t.Run(fmt.Sprintf("%v, %d connections", stall, pool), func(t *testing.T) { test(t, b, stall, pool) })
			}
		}
	})
}
