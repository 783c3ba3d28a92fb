package lease_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// The network stalls for a while. Soon afterwards leases are granted and queries are executed as before, the numbers of
// goroutines and sessions are as before, and a holder with heartbeats still holds its lease. No token is issued for a
// caller that had given up, unless its statement was already sent.
func TestLeasesAfterANetworkThatStoodStill(t *testing.T) {
	harness.EachStall(t, func(t *testing.T, b harness.Base, stall time.Duration, pool int) {
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
		end, holding := make(chan struct{}), make(chan struct{})
		holder := harness.Go(func() error {
			return leases.Do(t.Context(), "held", func(ctx context.Context) error {
				close(holding)
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-end:
					return nil
				}
			}, lease.TTL(3*stall+harness.Patience), lease.Heartbeat(stall/2)) // a busy machine is no loss
		})
		<-holding
		granted := network.StandStill(t, b, admin, db, stall, func(db *sql.DB) func(context.Context, int) bool {
			leases, err := lease.New(db)
			if err != nil {
				t.Fatal(err)
			}
			return func(ctx context.Context, caller int) bool {
				l, ok, _ := leases.TryAcquire(ctx, fmt.Sprint("crowd/", caller))
				if ok {
					_ = l.Release(context.WithoutCancel(ctx))
				}
				return ok
			}
		})
		close(end)
		if err := holder.Wait(); err != nil {
			t.Errorf("the holder, with heartbeats: %v", err)
		}
		var issued int64
		if err := admin.QueryRow("SELECT SUM(token) FROM fencing_tokens WHERE name LIKE 'crowd/%'").Scan(&issued); err != nil {
			t.Fatal(err)
		}
		t.Logf("%d tokens for %d grants", issued, granted)
		// On a machine that answers most callers after their deadlines, most statements are under way when these end.
		if most := granted + granted/2 + int64(2*harness.Callers()+4*pool); issued > most && granted > 500 {
			t.Errorf("%d tokens for %d grants: more than statements that were under way", issued, granted)
		}
	})
}

// Callers that get no connection in time leave no goroutine and take no token.
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
		l := harness.MustAcquire(t, leases, "jobs") // runs after anything that is still queued
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
