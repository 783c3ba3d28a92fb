package lease_test

import (
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence/integration/harness"
	"github.com/sqlfence/sqlfence/lease"
)

// A lease is what it is for everybody as soon as it is granted, extended and released,
// whatever the session's settings are.
func TestLeaseInMySQLSessions(t *testing.T) {
	harness.EachMySQLSession(t, func(t *testing.T, db, plain *sql.DB) {
		ctx := t.Context()
		leases, others := harness.NewLeases(t, db), harness.NewLeases(t, plain)
		for round := int64(1); round <= 3; round++ {
			for _, key := range []string{"jobs", "Jobs", "jobs ", "bücher"} {
				l := harness.MustAcquire(t, leases, key, lease.Owner("ädä"))
				harness.WantToken(t, l, key, 2*round-1)
				if _, ok, err := others.TryAcquire(ctx, key); ok || err != nil {
					t.Errorf("%q was taken by another: %v, %v", key, ok, err)
				}
				if again, ok, err := leases.TryAcquire(ctx, key, lease.Owner("ädä"), lease.Refresh(), lease.TTL(time.Minute)); !ok || err != nil || again.LockID() != l.LockID() {
					t.Errorf("%q isn't its owner's any more: %v, %v", key, ok, err)
				}
				if err := l.Extend(ctx, time.Hour); err != nil {
					t.Error(err)
				}
				info, ok, err := others.Lookup(ctx, key)
				if err != nil || !ok || info.Holder != "ädä" || info.ExpiresAt.Sub(info.AcquiredAt) < time.Hour || time.Since(info.AcquiredAt).Abs() > time.Minute {
					t.Errorf("Lookup: %+v, %v, %v", info, ok, err)
				}
				harness.MustRelease(t, l)
				if err := leases.Release(ctx, l.LockID()); !errors.Is(err, lease.ErrNotHeld) {
					t.Errorf("a second release: %v", err)
				}
				taken := harness.MustAcquire(t, others, key)
				harness.WantToken(t, taken, key, 2*round)
				if locked, err := leases.IsLocked(ctx, key); !locked || err != nil {
					t.Errorf("%q isn't locked: %v", key, err)
				}
				harness.MustRelease(t, taken)
				if live, err := leases.List(ctx); len(live) != 0 || err != nil {
					t.Errorf("left: %v, %v", live, err)
				}
			}
		}
		ephemeral := harness.MustAcquire(t, leases, "short", lease.Ephemeral())
		if _, ok, err := others.TryAcquire(ctx, "short"); ok || err != nil {
			t.Errorf("a live ephemeral lease was taken: %v, %v", ok, err)
		}
		harness.MustRelease(t, ephemeral)
		if n, err := leases.Sweep(ctx); n != 5 || err != nil {
			t.Errorf("swept %d, %v", n, err)
		}
	})
}

// Who wants a held lease waits for nobody, also while its holder writes; who takes a free one waits
// for the writes under the old token, and its ttl begins after that.
func TestLeaseBesideWritesOnMySQL(t *testing.T) {
	dsn := harness.MySQLDatabase(t)
	db, waiters := harness.MySQL.Raw(t, dsn), harness.MySQL.Raw(t, dsn)
	leases, others := harness.NewLeases(t, db), harness.NewLeases(t, waiters)
	held := harness.MustAcquire(t, leases, "jobs")
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	var token int64 // what a guard of the ledger does
	if err := tx.QueryRow("SELECT token FROM fencing_tokens WHERE name = 'jobs' LOCK IN SHARE MODE").Scan(&token); err != nil || token != 1 {
		t.Fatal(token, err)
	}
	if _, ok, err := others.TryAcquire(t.Context(), "jobs"); ok || err != nil {
		t.Errorf("a held lease: %v, %v", ok, err)
	}
	if err := held.Extend(t.Context(), time.Minute); err != nil {
		t.Error(err)
	}
	harness.MustRelease(t, held)
	taken := make(chan *lease.Lease, 1)
	go func() {
		l, err := others.Acquire(t.Context(), "jobs", lease.TTL(time.Hour), lease.Timeout(time.Minute))
		if err != nil {
			t.Error(err)
		}
		taken <- l
	}()
	harness.Eventually(t, "the wait for the write", func() bool {
		var n int
		err := db.QueryRow("SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND info LIKE '%FOR UPDATE' AND id <> CONNECTION_ID()").Scan(&n)
		return err == nil && n > 0
	})
	select {
	case l := <-taken:
		t.Fatalf("%v was taken beside a write under the old token", l)
	default:
	}
	var before int64
	if err := db.QueryRow("SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))").Scan(&before); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	l := <-taken
	harness.WantToken(t, l, "jobs", 2)
	if l.AcquiredAt().UnixMicro() < before || l.ExpiresAt().Sub(l.AcquiredAt()) != time.Hour {
		t.Errorf("%v began before the write was committed, or is too short", l)
	}
}

// Those who race for new keys, from several pools, all get them, with one winner at a time and
// no token twice.
func TestLeaseNewKeysOnMySQL(t *testing.T) {
	for _, level := range []sql.IsolationLevel{sql.LevelReadUncommitted, sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable} {
		t.Run(level.String(), func(t *testing.T) {
			dsn := harness.MySQLDatabase(t)
			harness.NewLeases(t, harness.MySQL.Raw(t, dsn))
			var all []*lease.Leases
			for range 6 {
				all = append(all, harness.NewLeases(t, harness.MySQL.Raw(t, harness.MySQL.AtLevel(t, dsn, level))))
			}
			for i := range 20 {
				key := fmt.Sprint("new/", i)
				var mu sync.Mutex
				tokens := make(map[int64]bool)
				var wg sync.WaitGroup
				for _, leases := range all {
					wg.Go(func() {
						l, err := leases.Acquire(t.Context(), key, lease.Wait(time.Minute, 5*time.Millisecond))
						if err != nil {
							t.Error(err)
							return
						}
						mu.Lock()
						tokens[l.Token().Value] = true
						mu.Unlock()
						if err := l.Release(t.Context()); err != nil {
							t.Error(err)
						}
					})
				}
				wg.Wait()
				if len(tokens) != len(all) || !tokens[1] || !tokens[int64(len(all))] {
					t.Errorf("%s: the tokens %v", key, tokens)
				}
			}
		})
	}
}
