package lease_test

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// Other clients see each grant, extension and release at once, whatever settings the session has.
func TestLeaseInMySQLSessions(t *testing.T) {
	harness.EachMySQLSession(t, func(t *testing.T, db, plain *sql.DB) {
		ctx := t.Context()
		leases, others := harness.NewLeases(t, db), harness.NewLeases(t, plain)
		for round := int64(1); round <= 2; round++ {
			for _, key := range []string{"jobs", "Jobs", "jobs ", "bücher"} {
				l := harness.MustAcquire(t, leases, key, lease.Resume("ädä"))
				harness.WantToken(t, l, key, 2*round-1)
				if _, ok, err := others.TryAcquire(ctx, key); ok || err != nil {
					t.Errorf("%q was taken by another: %v, %v", key, ok, err)
				}
				if again, ok, err := leases.TryAcquire(ctx, key, lease.Resume("ädä"), lease.Refresh(), lease.TTL(30*time.Minute)); !ok || err != nil || again.LockID() != l.LockID() {
					t.Errorf("%q isn't its owner's any more: %v, %v", key, ok, err)
				}
				if err := l.Extend(ctx, time.Hour); err != nil {
					t.Error(err)
				}
				info, ok, err := others.Lookup(ctx, key)
				if err != nil || !ok || info.Holder != "ädä" || info.ExpiresAt.Sub(info.AcquiredAt) < time.Hour || time.Since(info.AcquiredAt).Abs() > harness.Patience {
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

// On MySQL callers don't share statements: each caller sends as many statements as it sends alone.
func TestLeaseSharesNothingOnMySQL(t *testing.T) {
	db, c := harness.MySQL.Counted(t, harness.MySQLDatabase(t))
	leases := harness.NewLeases(t, db)
	const callers = 24
	pair := func(i int) error {
		l, err := leases.Acquire(t.Context(), fmt.Sprint("own/", i))
		if err != nil {
			return err
		}
		return l.Release(t.Context())
	}
	together(t, callers, pair) // from now on the keys have rows
	c.Reset()
	together(t, callers, pair)
	of := countsOf[harness.MySQL.Dialect]
	if n, want := len(c.Texts()), callers*(of.again+of.release); n != want {
		t.Errorf("%d statements, want %d", n, want)
	}
}

// Callers in several pools compete for new keys. All get them in the end, one at a time, and no token is issued twice.
func TestLeaseNewKeysOnMySQL(t *testing.T) {
	for _, level := range []sql.IsolationLevel{sql.LevelReadUncommitted, sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable} {
		t.Run(level.String(), func(t *testing.T) {
			dsn := harness.MySQLDatabase(t)
			harness.NewLeases(t, harness.MySQL.Raw(t, dsn))
			var all []*lease.Leases
			for range 6 {
				all = append(all, harness.NewLeases(t, harness.MySQL.Raw(t, harness.MySQL.AtLevel(t, dsn, level))))
			}
			for i := range 6 {
				key := fmt.Sprint("new/", i)
				var mu sync.Mutex
				tokens := make(map[int64]bool)
				var wg sync.WaitGroup
				for _, leases := range all {
					wg.Go(func() {
						l, err := leases.Acquire(t.Context(), key, lease.Timeout(harness.Patience), lease.Interval(5*time.Millisecond))
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

// With statement-based logging a late replica must reach the same result as the primary. SYSDATE differs on the
// replica, so SYSDATE may occur only in the statement that changed nothing on the primary.
func TestLeaseLoggedAsStatementsOnMySQL(t *testing.T) {
	for format, transacts := range map[string]bool{"STATEMENT": true, "MIXED": false, "ROW": false} {
		dsn := harness.MySQLWith(t, harness.MySQLDatabase(t), func(c *mysql.Config) { c.Params = map[string]string{"binlog_format": format} })
		db, counter := harness.MySQL.Counted(t, dsn)
		l := harness.MustAcquire(t, harness.NewLeases(t, db), "jobs")
		for _, do := range []func() error{
			func() error { return l.Extend(t.Context(), time.Hour) },
			func() error { return l.Release(t.Context()) },
		} {
			counter.Reset()
			if err := do(); err != nil {
				t.Fatal(err)
			}
			locks := func(text string) bool { return strings.HasSuffix(text, "FOR UPDATE") }
			if sent := counter.Texts(); slices.ContainsFunc(sent, locks) != transacts {
				t.Errorf("%s: %q", format, sent)
			}
		}
	}
}

// A session whose clock is set to a later or an earlier time doesn't take a lease that another holder has, and doesn't
// end a live lease.
func TestLeaseInASessionWithAClockOfItsOwn(t *testing.T) {
	db := harness.MySQL.Raw(t, harness.MySQLDatabase(t))
	db.SetMaxOpenConns(1)
	leases := harness.NewLeases(t, db)
	held := harness.MustAcquire(t, leases, "jobs")
	begins := time.Now()
	for _, clock := range []string{"2147480000", "1000000000", "UNIX_TIMESTAMP() + 3600", "UNIX_TIMESTAMP() - 3600", "UNIX_TIMESTAMP() + 60"} {
		if _, err := db.Exec("SET timestamp = DEFAULT"); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec("SET timestamp = " + clock); err != nil {
			t.Fatal(err)
		}
		if l, ok, err := leases.TryAcquire(t.Context(), "jobs"); ok || err != nil {
			t.Errorf("%s: taken as %v, %v, while it is held", clock, l, err)
		}
		if err := held.Extend(t.Context(), time.Minute); err != nil {
			t.Errorf("%s: Extend: %v", clock, err)
		}
		if ends := held.ExpiresAt(); ends.Before(begins.Add(30*time.Second)) || ends.After(begins.Add(10*time.Minute)) {
			t.Errorf("%s: ends at %v, extended by a minute at %v", clock, ends, begins)
		}
		other := harness.MustAcquire(t, leases, "others")
		if err := other.Release(t.Context()); err != nil {
			t.Errorf("%s: Release: %v", clock, err)
		}
	}
}
