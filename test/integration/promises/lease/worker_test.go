package lease_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// TestLeaseWorker isn't a test, but a process of TestLeaseProcesses. It works until its standard input ends, and prints
// "stale" for each refused write, and other errors.
func TestLeaseWorker(t *testing.T) {
	name, dsn, ok := strings.Cut(os.Getenv(leaseWorkerEnv), " ")
	if !ok {
		t.Skip("run by TestLeaseProcesses")
	}
	b := harness.Stores[slices.IndexFunc(harness.Stores, func(b harness.Base) bool { return b.Name == name })]
	db := b.Fenced(t, dsn,
		sqlfence.WithTable("accounts", sqlfence.RowFence("fence_token"), sqlfence.Key("id")),
		sqlfence.WithTable("notes", sqlfence.Ledger(), sqlfence.Resource("accounts"), sqlfence.Key("id")))
	db.SetMaxOpenConns(leaseGoroutines)
	db.SetMaxIdleConns(leaseGoroutines)
	leases, err := lease.New(db, lease.WithLogger(slog.New(slog.DiscardHandler)), lease.WithDefaults(lease.TTL(leaseTTL), lease.Timeout(time.Second), lease.Interval(20*time.Millisecond)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	var wg sync.WaitGroup
	for range leaseGoroutines {
		wg.Go(func() {
			for ctx.Err() == nil {
				err := work(ctx, db, leases, fmt.Sprint(rand.IntN(leaseKeys)))
				switch {
				case errors.Is(err, sqlfence.ErrStale):
					fmt.Println("stale")
				case errors.Is(err, lease.ErrHeld), errors.Is(err, lease.ErrNotHeld), errors.Is(err, lease.ErrLeaseLost), ctx.Err() != nil:
				case err != nil && !errors.Is(err, context.DeadlineExceeded): // the database was too busy
					fmt.Println(err)
				}
			}
		})
	}
	wg.Wait()
}

// work acts as a holder that never checks the lease: only the fence stops late writes.
func work(ctx context.Context, db *sql.DB, leases *lease.Leases, id string) error {
	l, err := leases.Acquire(ctx, "accounts/"+id)
	if err != nil {
		return err
	}
	heedless := context.WithoutCancel(l.Context())
	for range 1 + rand.IntN(3) {
		for _, table := range []string{"accounts", "notes"} {
			if _, err := db.ExecContext(heedless, "UPDATE "+table+" SET writer = $1 WHERE id = $2", l.Token().Value, id); err != nil {
				return err
			}
		}
		time.Sleep(rand.N(10 * time.Millisecond)) // stands for work
		if rand.IntN(2) == 0 {
			if err := l.Extend(heedless, leaseTTL); err != nil && !errors.Is(err, lease.ErrLeaseLost) {
				return err
			}
		}
	}
	return l.Release(heedless)
}
