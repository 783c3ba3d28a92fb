package lease_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// wantLoss fails the test unless err is ErrStale and ErrLeaseLost, and doesn't look like a cancelled context.
func wantLoss(t *testing.T, what string, err error) {
	t.Helper()
	var lost *lease.LostError
	if !errors.Is(err, sqlfence.ErrStale) || !errors.Is(err, lease.ErrLeaseLost) || !errors.As(err, &lost) {
		t.Errorf("%s: %v, want ErrStale and ErrLeaseLost", what, err)
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%s: %v is the end of a context", what, err)
	}
}

// takeAway releases the lease by others, and makes the holder notice the loss.
func takeAway(t *testing.T, others *lease.Leases, l *lease.Lease) {
	t.Helper()
	if err := others.Release(t.Context(), l.LockID()); err != nil {
		t.Fatal(err)
	}
	wantLoss(t, "Extend", l.Extend(t.Context(), harness.Patience))
	<-l.Context().Done()
}

// An operation that begins after the loss of its lease fails with the loss, and not with "cancelled".
func TestG12AfterALoss(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		sh, leases := leaseShop(t, harness.Setting{Base: b}, sqlfence.RowFence("fence_token"))
		l := harness.MustAcquire(t, leases, "books")
		conn, err := sh.DB.Conn(t.Context()) // database/sql itself checks contexts in other calls
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.ExecContext(l.Context(), harness.SetPrice, 20, 1); err != nil {
			t.Fatal(err)
		}
		takeAway(t, leases, l)
		unchanged := sh.Unchanged(t)
		ctx, cancel := context.WithCancel(l.Context())
		defer cancel()
		for name, run := range harness.Ways {
			err := run(ctx, conn, harness.SetPrice, 30, 1)
			wantLoss(t, name, err)
			if errors.Is(err, sqlfence.ErrUnknownOutcome) {
				t.Errorf("%s: %v, but nothing was sent", name, err)
			}
		}
		wantLoss(t, "Retry", sqlfence.Retry(ctx, sh.DB, sqlfence.RetryOptions{}, func(context.Context, *sql.Tx) error { return nil }))
		unchanged()

		store, err := tokens.New(sh.DB)
		if err != nil {
			t.Fatal(err)
		}
		_, err = store.Issue(ctx, "books")
		wantLoss(t, "Issue", err)
		_, err = store.Current(ctx, "books")
		wantLoss(t, "Current", err)
		_, err = leases.Acquire(ctx, "others")
		wantLoss(t, "Acquire", err)
		_, _, err = leases.TryAcquire(ctx, "others")
		wantLoss(t, "TryAcquire", err)
		_, err = leases.IsLocked(ctx, "books")
		wantLoss(t, "IsLocked", err)
		_, err = leases.Sweep(ctx)
		wantLoss(t, "Sweep", err)
		wantLoss(t, "Do", leases.Do(ctx, "others", func(context.Context) error { return nil }))
		for name, returns := range map[string]func(context.Context) error{
			"nothing": func(context.Context) error { return nil },
			"its end": context.Context.Err,
			"more":    func(ctx context.Context) error { return fmt.Errorf("price: %w", ctx.Err()) },
		} {
			wantLoss(t, "Do: "+name, leases.Do(t.Context(), "books", func(ctx context.Context) error {
				info, _, err := leases.Lookup(t.Context(), "books")
				if err == nil {
					err = leases.Release(t.Context(), info.LockID)
				}
				if err != nil {
					t.Error(err)
				}
				<-ctx.Done()
				_, err = sh.DB.ExecContext(ctx, harness.SetPrice, 40, 1)
				if !errors.Is(err, context.Canceled) {
					wantLoss(t, "a write", err)
				}
				return returns(ctx)
			}, lease.Heartbeat(10*time.Millisecond)))
		}
	})
}

// If the lease is lost during a write, the write fails with the loss.
func TestLossDuringAWrite(t *testing.T) {
	for _, fence := range harness.Fences {
		t.Run(fence.Name, func(t *testing.T) {
			harness.EachBase(t, func(t *testing.T, b harness.Base) {
				if !b.Networked() {
					t.Skip("SQLite's drivers wait for the file, whatever becomes of the context")
				}
				sh, leases := leaseShop(t, harness.Setting{Base: b}, fence.Rule)
				ways := map[string]func(ctx context.Context) error{
					"Retry": func(ctx context.Context) error {
						return sqlfence.Retry(ctx, sh.DB, sqlfence.RetryOptions{}, func(ctx context.Context, tx *sql.Tx) error {
							_, err := tx.ExecContext(ctx, harness.SetPrice, 30, 1)
							return err
						})
					},
					"a text without arguments": func(ctx context.Context) error {
						_, err := sh.DB.ExecContext(ctx, "UPDATE books SET price = 30 WHERE id = 1")
						return err
					},
				}
				for name, run := range harness.Ways {
					ways[name] = func(ctx context.Context) error { return run(ctx, sh.DB, harness.SetPrice, 30, 1) }
				}
				for name, write := range ways {
					l := harness.MustAcquire(t, leases, "books")
					blocker := sh.Block(t, harness.Write{Name: "update"})
					writing := harness.Go(func() error { return write(l.Context()) })
					sh.WantBlocked(t, blocker.PID, writing.Ended())
					takeAway(t, harness.NewLeases(t, sh.Plain), l)
					wantLoss(t, name, writing.Wait())
					if err := blocker.Tx.Rollback(); err != nil {
						t.Fatal(err)
					}
				}
			})
		})
	}
}

// If a caller gives up, it gets its context's error, not the loss of a lease.
func TestGivingUpIsNoLoss(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		sh, leases := leaseShop(t, harness.Setting{Base: b}, sqlfence.Ledger())
		conn, err := sh.DB.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		ctx, cancel := context.WithCancel(t.Context())
		err = leases.Do(ctx, "books", func(ctx context.Context) error {
			cancel()
			_, err := conn.ExecContext(ctx, harness.SetPrice, 30, 1)
			return err
		})
		if !errors.Is(err, context.Canceled) || errors.Is(err, sqlfence.ErrStale) || errors.Is(err, lease.ErrLeaseLost) {
			t.Errorf("Do: %v", err)
		}
	})
}
