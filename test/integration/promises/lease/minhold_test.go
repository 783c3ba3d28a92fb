package lease_test

import (
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// hourAgo moves the times of all leases back by an hour, as if an hour had passed.
func hourAgo(t *testing.T, b harness.Base, db *sql.DB) {
	t.Helper()
	hour := map[sqlfence.Dialect]string{sqlfence.Postgres: "interval '1 hour'", sqlfence.SQLite: "3600000", sqlfence.MySQL: "3600000000"}[b.Dialect]
	harness.MustExec(t, db, "UPDATE fencing_leases SET acquired_at = acquired_at - "+hour+", expires_at = expires_at - "+hour)
}

// Under MinHold, a lease that is released early becomes free only after the minimum time, by the database's clock. The
// minimum time may be longer or shorter than the TTL.
func TestLeaseMinHold(t *testing.T) {
	eachLeases(t, func(t *testing.T, b harness.Base, db *sql.DB, leases *lease.Leases) {
		ctx := t.Context()
		for i, ttl := range []time.Duration{time.Minute, 3 * time.Hour} {
			token := int64(3*i + 1)
			terms := []lease.Term{lease.TTL(ttl), lease.MinHold(time.Hour), lease.Resume("me")}
			l := harness.MustAcquire(t, leases, "jobs", terms...)
			harness.WantToken(t, l, "jobs", token)
			harness.MustRelease(t, l)
			info, held, err := leases.Lookup(ctx, "jobs")
			if err != nil || !held || info.Holder != "" || info.LockID == l.LockID() || !info.AcquiredAt.Equal(l.AcquiredAt()) || info.ExpiresAt.Sub(info.AcquiredAt) != time.Hour {
				t.Errorf("ttl %v: Lookup = %+v, %v, %v; acquired %v", ttl, info, held, err, l.AcquiredAt())
			}
			for _, owner := range []string{"me", "other"} {
				if _, ok, err := leases.TryAcquire(ctx, "jobs", lease.Resume(owner)); ok || err != nil {
					t.Errorf("ttl %v: %s has it early: %v, %v", ttl, owner, ok, err)
				}
			}
			if _, err := leases.Extend(ctx, l.LockID(), time.Hour); !errors.Is(err, lease.ErrNotHeld) {
				t.Errorf("ttl %v: extended after the release: %v", ttl, err)
			}
			if err := leases.Release(ctx, l.LockID()); !errors.Is(err, lease.ErrNotHeld) {
				t.Errorf("ttl %v: released twice: %v", ttl, err)
			}
			hourAgo(t, b, db)
			next := harness.MustAcquire(t, leases, "jobs", lease.TTL(3*time.Hour), lease.MinHold(time.Hour))
			harness.WantToken(t, next, "jobs", token+1)

			hourAgo(t, b, db) // released after its minimum time it is free at once
			harness.MustRelease(t, next)
			free := harness.MustAcquire(t, leases, "jobs")
			harness.WantToken(t, free, "jobs", token+2)
			harness.MustRelease(t, free)
		}
	})
}

// MinHold works in all sessions of MySQL, including sessions without autocommit.
func TestLeaseMinHoldInMySQLSessions(t *testing.T) {
	harness.EachMySQLSession(t, func(t *testing.T, db, plain *sql.DB) {
		leases, others := harness.NewLeases(t, db), harness.NewLeases(t, plain)
		harness.MustRelease(t, harness.MustAcquire(t, leases, "jobs", lease.MinHold(time.Hour)))
		if _, ok, err := others.TryAcquire(t.Context(), "jobs"); ok || err != nil {
			t.Errorf("another has it early: %v, %v", ok, err)
		}
		info, held, err := others.Lookup(t.Context(), "jobs")
		if err != nil || !held || info.ExpiresAt.Sub(info.AcquiredAt) != time.Hour {
			t.Errorf("Lookup = %+v, %v, %v", info, held, err)
		}
		hourAgo(t, harness.MySQL, plain)
		harness.MustRelease(t, harness.MustAcquire(t, others, "jobs"))
	})
}

// With MinHold a released ephemeral lease stays held after its session has ended.
func TestLeaseMinHoldEphemeral(t *testing.T) {
	eachLeases(t, func(t *testing.T, b harness.Base, db *sql.DB, leases *lease.Leases) {
		harness.MustRelease(t, harness.MustAcquire(t, leases, "jobs", lease.Ephemeral(), lease.MinHold(time.Hour)))
		info, held, err := leases.Lookup(t.Context(), "jobs")
		if err != nil || !held || info.Ephemeral {
			t.Errorf("Lookup = %+v, %v, %v", info, held, err)
		}
	})
}
