package drivers

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
)

// A blackhole stands before the server. Once armed, connections on which a client
// sends something swallow it and all that comes after, in both directions, and stay
// open: as with a host that has gone, or a firewall that has forgotten them.
type blackhole struct {
	dsn string

	mu        sync.Mutex
	left      int // how many connections are to be swallowed yet
	swallowed int
	lost      []net.Conn
}

func newBlackhole(t *testing.T, dsn string) *blackhole {
	t.Helper()
	h := new(blackhole)
	h.dsn = relay(t, dsn, func(client, server net.Conn) {
		var gone sync.Once
		dead := make(chan struct{})
		go func() {
			defer server.Close()
			buf := make([]byte, 64<<10)
			for {
				n, err := client.Read(buf)
				if err != nil {
					return
				}
				if h.swallows(client) {
					gone.Do(func() { close(dead) })
				}
				select {
				case <-dead:
					continue
				default:
				}
				if _, err := server.Write(buf[:n]); err != nil {
					return
				}
			}
		}()
		buf := make([]byte, 64<<10)
		for {
			n, err := server.Read(buf)
			select {
			case <-dead:
				return
			default:
			}
			if err != nil {
				_ = client.Close()
				return
			}
			if _, err := client.Write(buf[:n]); err != nil {
				return
			}
		}
	})
	return h
}

// arm swallows the next n connections on which something is sent.
func (h *blackhole) arm(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.left, h.swallowed = n, 0
}

func (h *blackhole) swallows(client net.Conn) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.left == 0 {
		return false
	}
	h.left--
	h.swallowed++
	h.lost = append(h.lost, client)
	return true
}

func (h *blackhole) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.swallowed
}

// end breaks the connections that were swallowed.
func (h *blackhole) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, conn := range h.lost {
		_ = conn.Close()
	}
	h.left, h.lost = 0, nil
}

// eachBlackhole runs test on every driver that goes over the network, with enough idle
// connections through the black hole.
func eachBlackhole(t *testing.T, test func(t *testing.T, b base, h *blackhole)) {
	t.Helper()
	eachBase(t, func(t *testing.T, b base) {
		if b.dialect != sqlfence.Postgres {
			t.Skip("SQLite has no network")
		}
		dsn := b.dsn(t)
		newLeases(t, b.raw(t, dsn))
		test(t, b, newBlackhole(t, dsn))
	})
}

// A caller whose connection swallows everything doesn't stop Issue of its name for
// the others, and the order holds: each later call gets a higher token.
func TestTokensOneBlackHoleStopsNobodyElse(t *testing.T) {
	eachBlackhole(t, func(t *testing.T, b base, h *blackhole) {
		db := b.raw(t, h.dsn)
		store := newStore(t, db)
		issueToken(t, store, "books")
		h.arm(1)
		ctx, cancel := context.WithCancel(t.Context())
		stuck := make(chan error, 1)
		go func() {
			_, err := store.Issue(ctx, "books")
			stuck <- err
		}()
		eventually(t, "a swallowed statement", func() bool { return h.count() == 1 })
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				limited, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				var last int64
				for range 10 {
					token, err := store.Issue(limited, "books")
					if err != nil || token.Value <= last {
						t.Errorf("Issue = %v, %v after %d", token, err, last)
						return
					}
					last = token.Value
				}
			})
		}
		wg.Wait()
		select {
		case err := <-stuck:
			t.Errorf("the swallowed call returned %v", err)
		default:
		}
		cancel()
		if err := <-stuck; !errors.Is(err, context.Canceled) {
			t.Errorf("the swallowed call: %v", err)
		}
		h.end()
		issueToken(t, store, "books")
	})
}

// Several such connections hold the others up a little longer, and no more.
func TestTokensSeveralBlackHolesStopNobodyElse(t *testing.T) {
	eachBlackhole(t, func(t *testing.T, b base, h *blackhole) {
		db := b.raw(t, h.dsn)
		db.SetMaxIdleConns(8)
		store := newStore(t, db)
		issueToken(t, store, "books")
		h.arm(3)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		var answered sync.WaitGroup
		results := make(chan error, 8)
		for i := range 8 {
			answered.Go(func() {
				_, err := store.Issue(ctx, "books")
				results <- err
			})
			eventually(t, "a swallowed statement", func() bool { return h.count() >= min(i+1, 3) })
		}
		for range 5 {
			if err := <-results; err != nil {
				t.Errorf("Issue: %v", err)
			}
		}
		cancel()
		answered.Wait()
		h.end()
	})
}

// A waiter whose connection swallows everything doesn't stop those who wait for the
// same lease, and doesn't take it for held.
func TestLeaseOneBlackHoleStopsNobodyElse(t *testing.T) {
	eachBlackhole(t, func(t *testing.T, b base, h *blackhole) {
		leases := newLeases(t, b.raw(t, h.dsn))
		h.arm(1)
		ctx, cancel := context.WithCancel(t.Context())
		stuck := waitFor(t, ctx, leases, lease.Timeout(0))
		eventually(t, "a swallowed attempt", func() bool { return h.count() == 1 })
		var others []<-chan error
		for range 4 {
			others = append(others, waitFor(t, t.Context(), leases, lease.Timeout(20*time.Second)))
		}
		for _, other := range others {
			if err := <-other; err != nil {
				t.Errorf("another waiter: %v", err)
			}
		}
		cancel()
		if err := <-stuck; !errors.Is(err, context.Canceled) {
			t.Errorf("the swallowed waiter: %v", err)
		}
		h.end()
	})
}

// Where nobody gets an answer, nobody says that the lease is held.
func TestLeaseWithoutAnAnswerIsNotHeld(t *testing.T) {
	eachBlackhole(t, func(t *testing.T, b base, h *blackhole) {
		leases := newLeases(t, b.raw(t, h.dsn))
		h.arm(1 << 20)
		var all []<-chan error
		for range 4 {
			all = append(all, waitFor(t, t.Context(), leases, lease.Timeout(400*time.Millisecond)))
		}
		for _, one := range all {
			if err := <-one; err == nil || errors.Is(err, lease.ErrHeld) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("without an answer: %v", err)
			}
		}
		h.end()
	})
}

// Whoever has waited in line behind one who was told that the lease is held says so too.
func TestLeaseWaiterInLineKnowsTheHolder(t *testing.T) {
	eachLeases(t, func(t *testing.T, b base, _ *sql.DB, leases *lease.Leases) {
		holder := mustAcquire(t, leases, "jobs", lease.Owner("holder"), lease.TTL(time.Minute))
		ctx, cancel := context.WithCancel(t.Context())
		first := waitFor(t, ctx, leases, lease.Wait(time.Minute, time.Hour))
		var held *lease.HeldError
		eventually(t, "a waiter that stands behind the first", func() bool {
			_, err := leases.Acquire(t.Context(), "jobs", lease.Timeout(50*time.Millisecond))
			return errors.As(err, &held) && held.Attempts == 0
		})
		if held.Holder != "holder" || !held.Until.Equal(holder.ExpiresAt()) {
			t.Errorf("%+v, want the holder's until %v", held, holder.ExpiresAt())
		}
		cancel()
		<-first
	})
}
