package lease_test

import (
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// An ephemeral lease ends with its holder's session, long before its TTL; a persistent lease doesn't. The next holder
// gets a higher token in both cases.
func TestLeaseEphemeral(t *testing.T) {
	harness.EachStore(t, func(t *testing.T, b harness.Base) {
		dsn := b.DSN(t)
		db := b.Raw(t, dsn)
		others := harness.NewLeases(t, db)
		holders := b.Raw(t, dsn)
		leases := harness.NewLeases(t, holders)
		harness.MustAcquire(t, leases, "persistent")
		one, two := harness.MustAcquire(t, leases, "one", lease.Ephemeral()), harness.MustAcquire(t, leases, "two", lease.Ephemeral())
		if err := one.Extend(t.Context(), time.Hour); err != nil {
			t.Errorf("Extend: %v", err)
		}
		for _, key := range []string{"one", "two"} {
			if _, ok, err := others.TryAcquire(t.Context(), key); ok || err != nil {
				t.Errorf("a live ephemeral lease was taken: %v, %v", ok, err)
			}
		}
		info, ok, err := others.Lookup(t.Context(), "one")
		if err != nil || !ok || info.Ephemeral != (b.Dialect != sqlfence.SQLite) {
			t.Errorf("Lookup: %+v, %v, %v", info, ok, err)
		}
		harness.MustRelease(t, one)
		harness.WantToken(t, harness.MustAcquire(t, others, "one"), "one", 2)
		if b.Dialect == sqlfence.SQLite {
			harness.MustRelease(t, two)
			return
		}

		killSessions(t, b, db)
		passed(t, others, "two")
		if locked, err := others.IsLocked(t.Context(), "persistent"); !locked || err != nil {
			t.Errorf("the persistent lease: %v, %v", locked, err)
		}
		if err := two.Extend(t.Context(), time.Hour); !errors.Is(err, lease.ErrLeaseLost) {
			t.Errorf("Extend after the session ended: %v", err)
		}
		if !errors.Is(two.Err(), lease.ErrLeaseLost) {
			t.Errorf("Err = %v", two.Err())
		}
		harness.WantToken(t, harness.MustAcquire(t, others, "two"), "two", 2)

		// The holder opens a new session for the next lease, even if it hasn't noticed the end of the first session.
		three := harness.MustAcquire(t, leases, "three", lease.Ephemeral())
		killSessions(t, b, db)
		passed(t, others, "three")
		four := harness.MustAcquire(t, leases, "four", lease.Ephemeral())
		if locked, err := others.IsLocked(t.Context(), "four"); !locked || err != nil {
			t.Errorf("the lease of the next session: %v, %v", locked, err)
		}
		harness.MustRelease(t, four)
		if err := three.Release(t.Context()); !errors.Is(err, lease.ErrNotHeld) {
			t.Errorf("Release of a dead lease: %v", err)
		}
		// After the release of its last ephemeral lease, a session frees its connection and its advisory lock.
		harness.Eventually(t, "the end of the session", func() bool { return holders.Stats().InUse == 0 && sessions(t, b, db) == 0 })
	})
}

const sessionLocks = `FROM pg_locks JOIN pg_database ON pg_database.oid = database AND datname = current_database()
	WHERE locktype = 'advisory' AND mode = 'ExclusiveLock' AND pid IN
	(SELECT pid FROM pg_stat_activity WHERE query LIKE '%pg_advisory_lock(%' AND pid <> pg_backend_pid())`

// killSessions ends the sessions of ephemeral leases.
func killSessions(t *testing.T, b harness.Base, db *sql.DB) {
	t.Helper()
	if b.Dialect == sqlfence.MySQL {
		list := mysqlSessions(t, db)
		if len(list) != 1 {
			t.Fatalf("%d sessions", len(list))
		}
		harness.MustExec(t, db, fmt.Sprint("KILL ", list[0]))
		return
	}
	var n int
	if err := db.QueryRow("SELECT count(pg_terminate_backend(pid)) " + sessionLocks).Scan(&n); err != nil || n != 1 {
		t.Fatalf("%d sessions, %v", n, err)
	}
}

// mysqlSessions returns the sessions that hold the locks of the leases' rows.
func mysqlSessions(t *testing.T, db *sql.DB) (list []int64) {
	t.Helper()
	rows, err := db.Query("SELECT DISTINCT IS_USED_LOCK(CONCAT('sqlfence:', COALESCE(session, 0))) FROM fencing_leases WHERE IS_USED_LOCK(CONCAT('sqlfence:', COALESCE(session, 0))) IS NOT NULL")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		list = append(list, id)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

func sessions(t *testing.T, b harness.Base, db *sql.DB) (n int) {
	t.Helper()
	if b.Dialect == sqlfence.MySQL {
		return len(mysqlSessions(t, db))
	}
	if err := db.QueryRow("SELECT count(*) " + sessionLocks).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Through a pooler, another caller may query on the session that holds the lease. Such a session can take its own
// advisory lock again, and must still count as live.
func TestLeaseOfTheSessionThatAsks(t *testing.T) {
	harness.EachPostgres(t, func(t *testing.T, s harness.Setting) {
		dsn := s.DSN(t)
		direct := harness.NewLeases(t, s.Raw(t, dsn))
		db := s.Raw(t, dsn)
		db.SetMaxOpenConns(1)
		leases := harness.NewLeases(t, db)
		for _, session := range []int64{77, -77, 1 << 40, -1 << 63} {
			key := fmt.Sprint("k/", session)
			l := harness.MustAcquire(t, direct, key, lease.Resume("me"))
			for _, query := range []string{"SELECT pg_advisory_lock($1)", "UPDATE fencing_leases SET session = $1 WHERE lock_id IS NOT NULL"} {
				harness.MustExec(t, db, query, session)
			}
			if _, ok, err := leases.TryAcquire(t.Context(), key); ok || err != nil {
				t.Errorf("%s: a live lease was taken: %v, %v", key, ok, err)
			}
			if _, err := leases.Sweep(t.Context()); err != nil {
				t.Error(err)
			}
			if locked, err := leases.IsLocked(t.Context(), key); !locked || err != nil {
				t.Errorf("%s: locked %v, %v", key, locked, err)
			}
			if _, err := leases.Extend(t.Context(), l.LockID(), time.Hour); err != nil {
				t.Errorf("%s: %v", key, err)
			}
			harness.MustExec(t, db, "SELECT pg_advisory_unlock_all()")
			if locked, err := leases.IsLocked(t.Context(), key); locked || err != nil {
				t.Errorf("%s: without its session it is locked: %v, %v", key, locked, err)
			}
		}
	})
}

// The session of ephemeral leases needs a separate connection, so a pool with one connection can't take them.
func TestEphemeralLeaseOfASingleConnection(t *testing.T) {
	harness.EachStore(t, func(t *testing.T, b harness.Base) {
		db := b.Raw(t, b.DSN(t))
		db.SetMaxOpenConns(1)
		leases := harness.NewLeases(t, db)
		l, err := leases.Acquire(t.Context(), "k", lease.Ephemeral())
		if b.Dialect == sqlfence.SQLite {
			if err != nil {
				t.Error(err)
			}
			harness.MustRelease(t, l)
			return
		}
		harness.WantError(t, err, lease.ErrNoSessions)
		harness.MustRelease(t, harness.MustAcquire(t, leases, "k"))
	})
}

// When its pool is closed, an ephemeral lease ends with its session, although the process lives on. database/sql's
// Close itself closes only idle connections.
func TestEphemeralLeaseEndsWithItsDatabase(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if !b.Networked() {
			t.Skip("SQLite has no sessions")
		}
		dsn := b.DSN(t)
		db := b.Raw(t, dsn)
		others := harness.NewLeases(t, db)
		for name, holders := range map[string]*sql.DB{"raw": b.Raw(t, dsn), "fenced": b.Fenced(t, dsn, harness.Books())} {
			leases := harness.NewLeases(t, holders)
			l, plain := harness.MustAcquire(t, leases, name, lease.Ephemeral()), harness.MustAcquire(t, leases, "plain "+name)
			released := harness.MustAcquire(t, leases, "released "+name, lease.Ephemeral())
			harness.MustRelease(t, released)
			if err := holders.Close(); err != nil {
				t.Fatal(err)
			}
			<-l.Done()
			wantLoss(t, "Err", l.Err())
			passed(t, others, name)
			if locked, err := others.IsLocked(t.Context(), "plain "+name); !locked || err != nil || plain.Err() != nil {
				t.Errorf("another lease: %v, %v, %v", locked, err, plain.Err())
			}
			harness.Eventually(t, "the end of the session", func() bool { return holders.Stats().OpenConnections == 0 && sessions(t, b, db) == 0 })
			if !errors.Is(released.Err(), lease.ErrReleased) {
				t.Errorf("a lease that was released: %v", released.Err())
			}
		}
	})
}
