package lease_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// leaseShop is a shop whose books need the token of the lease "books".
func leaseShop(t *testing.T, s harness.Setting, rule sqlfence.Rule) (*harness.Shop, *lease.Leases) {
	t.Helper()
	sh := s.Shop(t, rule)
	sh.Exec(t, "INSERT INTO books (id, price) VALUES (1, 10)")
	return sh, harness.NewLeases(t, sh.DB)
}

func setBookPrice(ctx context.Context, db *sql.DB, price int) error {
	_, err := db.ExecContext(ctx, "UPDATE books SET price = $1 WHERE id = 1", price)
	return err
}

// The function's writes present the lease's token, and writes with a token that isn't the newest any more are refused.
// So Do combines lock, token and check.
func TestLeaseDoFencesItsWrites(t *testing.T) {
	for _, fence := range harness.Fences {
		t.Run(fence.Name, func(t *testing.T) {
			harness.EachBase(t, func(t *testing.T, b harness.Base) {
				sh, leases := leaseShop(t, harness.Setting{Base: b}, fence.Rule)
				var stale context.Context
				_, err := do(t, leases, "books", func(ctx context.Context) error {
					stale = context.WithoutCancel(ctx)
					return setBookPrice(ctx, sh.DB, 20)
				})
				if err != nil {
					t.Fatal(err)
				}
				if locked, err := leases.IsLocked(t.Context(), "books"); locked || err != nil {
					t.Errorf("after Do: locked %v, %v", locked, err)
				}
				if _, err := do(t, leases, "books", func(ctx context.Context) error { return setBookPrice(ctx, sh.DB, 30) }); err != nil {
					t.Fatal(err)
				}
				harness.WantError(t, setBookPrice(stale, sh.DB, 40), sqlfence.ErrStale)
				if got := sh.State(t, false); got != "1:30" {
					t.Errorf("books: %s", got)
				}
			})
		})
	}
}

// do calls Do. It reports whether the release at its end was answered in time; if not, do repeats the release.
func do(t *testing.T, leases *lease.Leases, key string, f func(context.Context) error, terms ...lease.Term) (inTime bool, err error) {
	t.Helper()
	return doWithin(t.Context(), t, leases, key, f, terms...)
}

func doWithin(ctx context.Context, t *testing.T, leases *lease.Leases, key string, f func(context.Context) error, terms ...lease.Term) (inTime bool, err error) {
	t.Helper()
	var token sqlfence.Token // none if f isn't called
	ended := time.Now()
	defer func() { inTime = token.Name == "" || !harness.ReleaseLate(t, leases, token, ended) }()
	return true, leases.Do(ctx, key, func(ctx context.Context) error {
		token, _ = sqlfence.FenceFrom(ctx, key)
		defer func() { ended = time.Now() }()
		return f(ctx)
	}, terms...)
}

func TestLeaseDoReturnsAndReleases(t *testing.T) {
	eachLeases(t, func(t *testing.T, b harness.Base, db *sql.DB, leases *lease.Leases) {
		broken := errors.New("broken")
		_, err := do(t, leases, "jobs", func(context.Context) error { return broken })
		if err != broken {
			t.Errorf("Do = %v, want the function's own error", err)
		}
		func() {
			defer func() {
				if r := recover(); r != "panic" {
					t.Errorf("recovered %v", r)
				}
			}()
			_, _ = do(t, leases, "jobs", func(context.Context) error { panic("panic") })
		}()
		ctx, cancel := context.WithCancel(t.Context())
		_, err = doWithin(ctx, t, leases, "jobs", func(ctx context.Context) error { cancel(); <-ctx.Done(); return ctx.Err() })
		if !errors.Is(err, context.Canceled) || errors.Is(err, lease.ErrLeaseLost) {
			t.Errorf("Do with a cancelled context = %v", err)
		}
		if locked, err := leases.IsLocked(t.Context(), "jobs"); locked || err != nil {
			t.Errorf("after Do: locked %v, %v", locked, err)
		}
		held := harness.MustAcquire(t, leases, "jobs")
		called := false
		err = leases.Do(t.Context(), "jobs", func(context.Context) error { called = true; return nil }, lease.Retries(0))
		if !errors.Is(err, lease.ErrHeld) || called {
			t.Errorf("Do on a held key = %v, called %v", err, called)
		}
		harness.MustRelease(t, held)
		harness.WantLedger(t, db, "jobs=4")
	})
}

// A lease is extended, with the same token, as long as its function runs.
func TestLeaseDoHeartbeats(t *testing.T) {
	eachLeases(t, func(t *testing.T, b harness.Base, db *sql.DB, leases *lease.Leases) {
		err := leases.Do(t.Context(), "jobs", func(ctx context.Context) error {
			first, _, err := leases.Lookup(ctx, "jobs")
			if err != nil {
				return err
			}
			harness.Eventually(t, "several heartbeats", func() bool {
				now, ok, err := leases.Lookup(ctx, "jobs")
				if err != nil || !ok || now.Token != first.Token {
					t.Fatalf("Lookup = %v, %v, %v", now, ok, err)
				}
				return now.ExpiresAt.Sub(first.ExpiresAt) > 200*time.Millisecond
			})
			return ctx.Err()
		}, lease.Heartbeat(100*time.Millisecond))
		if err != nil {
			t.Error(err)
		}
	})
}

// The next heartbeat notices a lease that was taken away, and Do reports the loss whatever its function returns.
func TestLeaseDoLost(t *testing.T) {
	eachLeases(t, func(t *testing.T, b harness.Base, db *sql.DB, leases *lease.Leases) {
		broken := errors.New("broken")
		for _, returned := range []error{nil, broken} {
			err := leases.Do(t.Context(), "jobs", func(ctx context.Context) error {
				harness.MustExec(t, db, "DELETE FROM fencing_leases")
				<-ctx.Done()
				var lost *lease.LostError
				if !errors.As(context.Cause(ctx), &lost) || lost.Token.Name != "jobs" || !errors.Is(lost, lease.ErrNotHeld) {
					t.Errorf("cause: %v", context.Cause(ctx))
				}
				return returned
			}, lease.Heartbeat(100*time.Millisecond))
			if !errors.Is(err, lease.ErrLeaseLost) || returned != nil && !errors.Is(err, returned) {
				t.Errorf("Do = %v, want ErrLeaseLost and %v", err, returned)
			}
		}
		// Without a heartbeat Do notices the loss at its end.
		var err error
		for inTime := false; !inTime; {
			inTime, err = do(t, leases, "jobs", func(ctx context.Context) error {
				harness.MustExec(t, db, "DELETE FROM fencing_leases")
				return nil
			})
		}
		if !errors.Is(err, lease.ErrLeaseLost) {
			t.Errorf("Do = %v, want ErrLeaseLost", err)
		}
	})
}

// The database is down for a while. If it is back in time, the lease survives. If it isn't, the function's context ends
// before the lease does, without a response from the database.
func TestLeaseDoDatabaseDown(t *testing.T) {
	harness.EachStore(t, func(t *testing.T, b harness.Base) {
		if !b.Networked() {
			t.Skip("SQLite has no network")
		}
		dsn := b.DSN(t)
		s := newSwitch(t, dsn)
		direct := harness.NewLeases(t, b.Raw(t, dsn))
		leases := harness.NewLeases(t, b.Raw(t, s.dsn))

		harness.Undisturbed(t, b.Raw(t, dsn), 5*time.Second, func() error {
			return leases.Do(t.Context(), "jobs", func(ctx context.Context) error {
				s.set(false)
				before, _, err := direct.Lookup(t.Context(), "jobs")
				if err != nil {
					return err
				}
				s.refusedOnce(t)
				s.set(true)
				harness.Eventually(t, "a heartbeat after the database was down", func() bool {
					now, ok, err := direct.Lookup(t.Context(), "jobs")
					return ctx.Err() != nil || err == nil && ok && now.ExpiresAt.After(before.ExpiresAt)
				})
				return context.Cause(ctx)
			}, lease.Heartbeat(100*time.Millisecond))
		})

		rounds := int64(0)
		harness.Undisturbed(t, b.Raw(t, dsn), 500*time.Millisecond, func() (problem error) {
			rounds++
			err := leases.Do(t.Context(), "mail", func(ctx context.Context) error {
				s.set(false)
				<-ctx.Done()
				if info, ok, err := direct.Lookup(t.Context(), "mail"); err != nil || ok && time.Until(info.ExpiresAt) > 2*time.Second {
					t.Errorf("the context ended long before the lease: %v, %v", info, err)
				}
				cause := context.Cause(ctx)
				if !errors.Is(cause, lease.ErrLeaseLost) {
					t.Errorf("cause: %v", cause)
				}
				if errors.Unwrap(cause) == nil {
					problem = fmt.Errorf("the cause has no error of a heartbeat: %w", cause)
				}
				return nil
			}, lease.TTL(time.Second), lease.Heartbeat(100*time.Millisecond))
			if !errors.Is(err, lease.ErrLeaseLost) {
				t.Errorf("down for too long: %v", err)
			}
			s.set(true)
			passed(t, direct, "mail")
			return problem
		})
		harness.WantToken(t, harness.MustAcquire(t, leases, "mail"), "mail", rounds+1)
	})
}

// A switchProxy is a proxy for a server, and can cut the server off.
type switchProxy struct {
	dsn string

	mu      sync.Mutex
	on      bool
	refused int
	open    []net.Conn
}

func newSwitch(t *testing.T, dsn string) *switchProxy {
	t.Helper()
	server, with := harness.ServerOf(t, dsn)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &switchProxy{on: true}
	t.Cleanup(func() { _ = listener.Close(); s.set(false) })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			s.connect(client, server)
		}
	}()
	s.dsn = with(listener.Addr().String())
	return s
}

func (s *switchProxy) connect(client net.Conn, server string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.on {
		s.refused++
		_ = client.Close()
		return
	}
	upstream, err := net.Dial("tcp", server)
	if err != nil {
		_ = client.Close()
		return
	}
	s.open = append(s.open, client, upstream)
	go harness.Pass(upstream, client, func([]byte) {})
	go harness.Pass(client, upstream, func([]byte) {})
}

// set permits connections, or closes all connections and refuses new ones.
func (s *switchProxy) set(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on = on
	if on {
		return
	}
	for _, c := range s.open {
		_ = c.Close()
	}
	s.open, s.refused = nil, 0
}

// refusedOnce waits until a client has failed to connect.
func (s *switchProxy) refusedOnce(t *testing.T) {
	t.Helper()
	harness.Eventually(t, "a refused connection", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.refused > 0
	})
}

// An owner's earlier lease is nearly over when Do takes it over. Do extends it in time.
func TestLeaseDoOfAnOwner(t *testing.T) {
	eachLeases(t, func(t *testing.T, b harness.Base, db *sql.DB, leases *lease.Leases) {
		t.Parallel() // the test mostly waits
		harness.Undisturbed(t, db, 300*time.Millisecond, func() error {
			before := harness.MustAcquire(t, leases, "jobs", lease.Resume("me"), lease.TTL(time.Second))
			_, err := do(t, leases, "jobs", func(ctx context.Context) error {
				select {
				case <-ctx.Done():
					return context.Cause(ctx)
				case <-before.Done():
				}
				return context.Cause(ctx)
			}, lease.Resume("me"), lease.TTL(time.Minute))
			if !errors.Is(before.Err(), lease.ErrLeaseLost) {
				t.Errorf("the lease from before: %v", before.Err())
			}
			return err
		})
	})
}
