package lease_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

func TestLeaseAcquireGivesUp(t *testing.T) {
	eachLeases(t, func(t *testing.T, b harness.Base, db *sql.DB, leases *lease.Leases) {
		t.Parallel() // the test mostly waits
		holder := harness.MustAcquire(t, leases, "jobs", lease.Resume("holder"))
		for _, test := range []struct {
			name     string
			terms    []lease.Term
			attempts int // at least this many
			exactly  bool
		}{
			{"one attempt", []lease.Term{lease.Retries(0)}, 1, true},
			{"retries", []lease.Term{lease.Retries(3), lease.Backoff(time.Millisecond)}, 4, true},
			{"timeout", []lease.Term{lease.Retries(1000), lease.Backoff(time.Millisecond), lease.Timeout(400 * time.Millisecond)}, 1, false},
			{"one attempt, by NoWait", []lease.Term{lease.NoWait()}, 1, true},
			{"wait", []lease.Term{lease.Timeout(400 * time.Millisecond), lease.Interval(time.Millisecond)}, 2, false},
		} {
			var held *lease.HeldError
			harness.Eventually(t, test.name+": answers within the limit", func() bool {
				_, err := leases.Acquire(t.Context(), "jobs", test.terms...)
				if !errors.Is(err, lease.ErrHeld) && !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("%s: %v, want ErrHeld", test.name, err)
				}
				return errors.As(err, &held) && (test.exactly || held.Attempts >= test.attempts)
			})
			if held.Key != "jobs" || held.Holder != "holder" || !held.Until.Equal(holder.ExpiresAt()) {
				t.Errorf("%s: %+v, want the holder's until %v", test.name, held, holder.ExpiresAt())
			}
			if test.exactly && held.Attempts != test.attempts {
				t.Errorf("%s: %d attempts, want %d", test.name, held.Attempts, test.attempts)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := leases.Acquire(ctx, "jobs", lease.Timeout(0)); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, lease.ErrHeld) {
			t.Errorf("the caller's own limit: %v", err)
		}
		harness.WantLedger(t, db, "jobs=1")
	})
}

// A waiter gets the lease after its release in this or another process, and after its end.
func TestLeaseAcquireWaits(t *testing.T) {
	eachLeases(t, func(t *testing.T, b harness.Base, db *sql.DB, leases *lease.Leases) {
		wait := lease.Interval(5 * time.Millisecond)
		elsewhere := harness.NewLeases(t, db)
		for i, by := range []*lease.Leases{leases, elsewhere} {
			holder := harness.MustAcquire(t, by, "jobs")
			got := make(chan *lease.Lease)
			go func() {
				l, err := leases.Acquire(t.Context(), "jobs", wait)
				if err != nil {
					t.Error(err)
				}
				got <- l
			}()
			harness.MustRelease(t, holder)
			l := <-got
			if l == nil {
				t.FailNow()
			}
			harness.WantToken(t, l, "jobs", int64(2*i+2))
			harness.MustRelease(t, l)
		}
		harness.MustAcquire(t, leases, "jobs", lease.TTL(50*time.Millisecond))
		harness.WantToken(t, harness.MustAcquire(t, elsewhere, "jobs", wait), "jobs", 6)
	})
}

// Of several waiters in one process only the first queries the database. Other waiters aren't affected when a waiter
// gives up.
func TestLeaseLine(t *testing.T) {
	harness.EachStore(t, func(t *testing.T, b harness.Base) {
		db, c := b.Counted(t, b.DSN(t))
		leases := harness.NewLeases(t, db)
		c.Reset() // discards Setup's statements
		holder := harness.MustAcquire(t, leases, "jobs")
		first := waitFor(t, t.Context(), leases, lease.Timeout(harness.Patience), lease.Interval(time.Hour))
		harness.Eventually(t, "the first one's attempt", func() bool { return leaseAttempts(c) == 2 })
		ctx, cancel := context.WithCancel(t.Context())
		var stay, leave []<-chan error
		for range 4 {
			stay = append(stay, waitFor(t, t.Context(), leases, lease.Timeout(harness.Patience), lease.Interval(time.Hour)))
			leave = append(leave, waitFor(t, ctx, leases, lease.Timeout(harness.Patience), lease.Interval(time.Hour)))
		}
		cancel()
		for _, w := range leave {
			if err := <-w; !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled: %v", err)
			}
		}
		if n := leaseAttempts(c); n != 2 {
			t.Errorf("%d attempts, want that of the holder and that of the first in the line", n)
		}
		harness.MustRelease(t, holder)
		for _, w := range append(stay, first) {
			if err := <-w; err != nil {
				t.Error(err)
			}
		}
	})
}

// waitFor acquires and releases the lease of jobs in the background.
func waitFor(t *testing.T, ctx context.Context, leases *lease.Leases, terms ...lease.Term) <-chan error {
	done := make(chan error, 1)
	go func() {
		l, err := leases.Acquire(ctx, "jobs", terms...)
		if err == nil {
			err = l.Release(t.Context())
		}
		done <- err
	}()
	return done
}

// leaseAttempts counts the statements that try to take a lease.
func leaseAttempts(c *harness.Counter) (n int) {
	for _, text := range c.Texts() {
		inserts := strings.Contains(text, "INSERT INTO fencing_leases") && !strings.Contains(text, "DUPLICATE KEY")
		if inserts || strings.Contains(text, "@@autocommit") && strings.Contains(text, "fencing_leases") {
			n++
		}
	}
	return n
}

// With the ledger's guard a new lease waits for open transactions with writes under the old token, and a heartbeat
// doesn't. The lease's TTL begins after the wait.
func TestLeaseWaitsForWritesUnderWay(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, s harness.Setting) {
		sh, leases := leaseShop(t, s, sqlfence.Ledger())
		old := harness.MustAcquire(t, leases, "books")
		ctx := context.WithoutCancel(old.Context()) // a holder that doesn't check its lease
		tx := harness.Begin(ctx, t, sh.DB, s.Level)
		if _, err := tx.ExecContext(ctx, "UPDATE books SET price = 20"); err != nil {
			t.Fatal(err)
		}
		session := s.Session(t, tx)
		if err := old.Extend(t.Context(), time.Hour); err != nil {
			t.Fatalf("a heartbeat beside a write: %v", err)
		}
		if _, ok, err := leases.TryAcquire(t.Context(), "books"); ok || err != nil {
			t.Errorf("TryAcquire of a held lease beside a write: %v, %v", ok, err)
		}
		if _, err := leases.Extend(t.Context(), old.LockID(), time.Millisecond); err != nil && !errors.Is(err, lease.ErrNotHeld) {
			t.Fatal(err) // the lease may have ended
		}
		passed(t, leases, "books")

		harness.WantToken(t, acquiredBehind(t, sh, leases, session, tx), "books", 2)
		harness.WantError(t, setBookPrice(ctx, sh.DB, 30), sqlfence.ErrStale)
	})
}

// acquiredBehind acquires a lease that waits for tx's writes. After their COMMIT the lease has its whole TTL.
func acquiredBehind(t *testing.T, sh *harness.Shop, leases *lease.Leases, session int, tx *sql.Tx) (l *lease.Lease) {
	t.Helper()
	acquiring := harness.Go(func() (err error) {
		l, err = leases.Acquire(t.Context(), "books", lease.TTL(time.Minute))
		return err
	})
	sh.WantBlocked(t, session, acquiring.Ended())
	released := serverClock(t, sh)
	if err := tx.Commit(); err != nil {
		t.Errorf("a write that came before the new token: %v", err)
	}
	if err := acquiring.Wait(); err != nil {
		t.Fatal(err)
	}
	if l.AcquiredAt().Before(released) || l.ExpiresAt().Sub(l.AcquiredAt()) != time.Minute {
		t.Errorf("acquired at %v until %v, but it waited until %v", l.AcquiredAt(), l.ExpiresAt(), released)
	}
	return l
}

// serverClock returns the time of the clock by which leases end.
func serverClock(t *testing.T, sh *harness.Shop) time.Time {
	t.Helper()
	l := harness.MustAcquire(t, harness.NewLeases(t, sh.Plain), "the clock")
	harness.MustRelease(t, l)
	return l.AcquiredAt()
}

// An attempt that is given up while waiting for open writes leaves no lease, whether the writes end before or after the
// attempt, and no waiting session.
func TestLeaseGivenUpWhileItWaits(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, s harness.Setting) {
		sh, leases := leaseShop(t, s, sqlfence.Ledger())
		old := harness.MustAcquire(t, leases, "books")
		ctx := context.WithoutCancel(old.Context())
		tx := harness.Begin(ctx, t, sh.DB, s.Level)
		if _, err := tx.ExecContext(ctx, "UPDATE books SET price = 20"); err != nil {
			t.Fatal(err)
		}
		harness.MustRelease(t, old)
		harness.GiveUp(t, sh.Plain, func() {
			for range 2 {
				short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				if _, err := leases.Acquire(short, "books"); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Acquire with a limit: %v", err)
				}
				cancel()
			}
		}, func() bool { return s.Waiting(t, sh.Plain) == 0 })
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		next := harness.MustAcquire(t, harness.NewLeases(t, sh.DB), "books", lease.Timeout(harness.Patience), lease.Interval(5*time.Millisecond))
		harness.WantError(t, setBookPrice(ctx, sh.DB, 30), sqlfence.ErrStale)
		if err := setBookPrice(next.Context(), sh.DB, 30); err != nil {
			t.Error(err)
		}
	})
}

// The first lease of a key has no row yet. After waiting for a write under another issuer's token the lease has the
// whole TTL, too.
func TestLeaseFirstWaitsForWritesUnderWay(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, s harness.Setting) {
		sh, leases := leaseShop(t, s, sqlfence.Ledger())
		token, err := harness.NewStore(t, sh.DB).Issue(t.Context(), "books")
		if err != nil {
			t.Fatal(err)
		}
		ctx := sqlfence.WithFence(t.Context(), token)
		tx := harness.Begin(ctx, t, sh.DB, s.Level)
		if _, err := tx.ExecContext(ctx, "UPDATE books SET price = 20"); err != nil {
			t.Fatal(err)
		}
		session := s.Session(t, tx)
		harness.WantToken(t, acquiredBehind(t, sh, leases, session, tx), "books", token.Value+1)
	})
}
