package lease_test

import (
	"context"
	"database/sql"
	"errors"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// eachLeases runs test on every base, raw and fenced, with the books registered.
func eachLeases(t *testing.T, test func(t *testing.T, b harness.Base, db *sql.DB, leases *lease.Leases)) {
	t.Helper()
	harness.EachLedger(t, func(t *testing.T, b harness.Base, dsn string, db *sql.DB) { test(t, b, db, harness.NewLeases(t, db)) })
}

// passed waits until a lease has ended by the server's clock.
func passed(t testing.TB, leases *lease.Leases, key string) {
	t.Helper()
	harness.Eventually(t, "the end of the lease of "+key, func() bool {
		locked, err := leases.IsLocked(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		return !locked
	})
}

func TestLeaseAcquireAndRelease(t *testing.T) {
	eachLeases(t, func(t *testing.T, b harness.Base, db *sql.DB, leases *lease.Leases) {
		before := time.Now()
		const ttl = 10 * time.Minute
		l := harness.MustAcquire(t, leases, "jobs", lease.TTL(ttl))
		harness.WantToken(t, l, "jobs", 1)
		if got := l.Token().Fence(); got != "000000000000001" {
			t.Errorf("first fence = %s", got)
		}
		if !regexp.MustCompile(`^[A-Za-z0-9_-]{22}$`).MatchString(l.LockID()) {
			t.Errorf("lock id = %q", l.LockID())
		}
		if got := l.ExpiresAt().Sub(l.AcquiredAt()); got != ttl {
			t.Errorf("ttl = %v", got)
		}
		if since := l.AcquiredAt().Sub(before); since < -time.Minute || since > harness.Patience {
			t.Errorf("acquired %v after now", since)
		}
		if fence, ok := sqlfence.FenceFrom(l.Context(), "jobs"); !ok || fence != l.Token() {
			t.Errorf("the context carries %v, %v", fence, ok)
		}
		if l.Err() != nil || l.Context().Err() != nil {
			t.Errorf("a live lease has ended: %v, %v", l.Err(), l.Context().Err())
		}
		if other, ok, err := leases.TryAcquire(t.Context(), "jobs"); other != nil || ok || err != nil {
			t.Errorf("TryAcquire of a held lease = %v, %v, %v", other, ok, err)
		}
		if other, ok, err := leases.TryAcquire(t.Context(), "mail"); !ok || err != nil {
			t.Errorf("TryAcquire of another key = %v, %v, %v", other, ok, err)
		}
		harness.MustRelease(t, l)
		if !errors.Is(l.Err(), lease.ErrReleased) || !errors.Is(context.Cause(l.Context()), lease.ErrReleased) {
			t.Errorf("after the release: %v, %v", l.Err(), context.Cause(l.Context()))
		}
		if err := l.Release(t.Context()); !errors.Is(err, lease.ErrReleased) {
			t.Errorf("second release: %v", err)
		}
		if err := leases.Release(t.Context(), l.LockID()); !errors.Is(err, lease.ErrNotHeld) {
			t.Errorf("second release by lock id: %v", err)
		}
		next, ok, err := leases.TryAcquire(t.Context(), "jobs")
		if !ok || err != nil {
			t.Fatalf("after the release: %v, %v", ok, err)
		}
		harness.WantToken(t, next, "jobs", 2)
		harness.WantLedger(t, db, "jobs=2", "mail=1")
	})
}

func TestLeaseExpires(t *testing.T) {
	eachLeases(t, func(t *testing.T, b harness.Base, db *sql.DB, leases *lease.Leases) {
		l := harness.MustAcquire(t, leases, "jobs", lease.TTL(50*time.Millisecond))
		<-l.Done()
		if !errors.Is(l.Err(), lease.ErrLeaseLost) || !errors.Is(context.Cause(l.Context()), lease.ErrLeaseLost) {
			t.Errorf("after its ttl: %v, %v", l.Err(), context.Cause(l.Context()))
		}
		passed(t, leases, "jobs")
		_, err := leases.Extend(t.Context(), l.LockID(), time.Hour)
		var notHeld *lease.NotHeldError
		if !errors.As(err, &notHeld) || !notHeld.Expired {
			t.Errorf("Extend of an expired lease: %v", err)
		}
		if err := leases.Release(t.Context(), l.LockID()); !errors.Is(err, lease.ErrNotHeld) {
			t.Errorf("Release of an expired lease: %v", err)
		}
		harness.WantToken(t, harness.MustAcquire(t, leases, "jobs"), "jobs", 2)
	})
}

func TestLeaseExtend(t *testing.T) {
	eachLeases(t, func(t *testing.T, b harness.Base, db *sql.DB, leases *lease.Leases) {
		l := harness.MustAcquire(t, leases, "jobs", lease.TTL(30*time.Minute))
		first := l.ExpiresAt()
		if err := l.Extend(t.Context(), time.Hour); err != nil {
			t.Fatal(err)
		}
		if by := l.ExpiresAt().Sub(first); by < 29*time.Minute || by > 50*time.Minute {
			t.Errorf("extended by %v, want 30m and what has passed: the ttl counts from now", by)
		}
		info, ok, err := leases.LookupID(t.Context(), l.LockID())
		if err != nil || !ok || !info.ExpiresAt.Equal(l.ExpiresAt()) || info.Token != l.Token() {
			t.Errorf("LookupID = %v, %v, %v; want until %v", info, ok, err, l.ExpiresAt())
		}
		// Extend sets the end of the lease, also an earlier one.
		if until, err := leases.Extend(t.Context(), l.LockID(), 30*time.Minute); err != nil || !until.Before(info.ExpiresAt) {
			t.Errorf("Extend = %v, %v", until, err)
		}
		if err := l.Extend(t.Context(), 20*time.Millisecond); err != nil && !errors.Is(err, lease.ErrLeaseLost) {
			t.Fatal(err) // the lease may have ended
		}
		<-l.Done()
		harness.WantLedger(t, db, "jobs=1")
	})
}

func TestLeaseForeignLockIDChangesNothing(t *testing.T) {
	eachLeases(t, func(t *testing.T, b harness.Base, db *sql.DB, leases *lease.Leases) {
		l := harness.MustAcquire(t, leases, "jobs")
		before, _, _ := leases.Lookup(t.Context(), "jobs")
		const foreign = "AAAAAAAAAAAAAAAAAAAAAA"
		if err := leases.Release(t.Context(), foreign); !errors.Is(err, lease.ErrNotHeld) {
			t.Errorf("Release: %v", err)
		}
		if _, err := leases.Extend(t.Context(), foreign, time.Hour); !errors.Is(err, lease.ErrNotHeld) {
			t.Errorf("Extend: %v", err)
		}
		if _, ok, err := leases.LookupID(t.Context(), foreign); ok || err != nil {
			t.Errorf("LookupID: %v, %v", ok, err)
		}
		after, ok, err := leases.Lookup(t.Context(), "jobs")
		if after != before || !ok || err != nil || after.LockID != l.LockID() {
			t.Errorf("was %+v, is %+v, %v, %v", before, after, ok, err)
		}
	})
}

func TestLeaseLookupAndList(t *testing.T) {
	eachLeases(t, func(t *testing.T, b harness.Base, db *sql.DB, leases *lease.Leases) {
		if _, ok, err := leases.Lookup(t.Context(), "jobs"); ok || err != nil {
			t.Errorf("Lookup of nothing: %v, %v", ok, err)
		}
		jobs := harness.MustAcquire(t, leases, "jobs", lease.Resume("worker 1"))
		harness.MustAcquire(t, leases, "alpha")
		harness.MustRelease(t, harness.MustAcquire(t, leases, "gone"))
		list, err := leases.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var keys []string
		for _, info := range list {
			keys = append(keys, info.Key)
		}
		if !slices.Equal(keys, []string{"alpha", "jobs"}) {
			t.Fatalf("List: %q", keys)
		}
		want := lease.Info{Key: "jobs", LockID: jobs.LockID(), Holder: "worker 1", Token: jobs.Token(),
			AcquiredAt: jobs.AcquiredAt(), ExpiresAt: jobs.ExpiresAt()}
		if list[1] != want {
			t.Errorf("List: %+v, want %+v", list[1], want)
		}
		if regexp.MustCompile(jobs.LockID()).MatchString(list[1].String()) {
			t.Errorf("%v shows the lock id", list[1])
		}
		if n, err := leases.Sweep(t.Context()); n != 1 || err != nil {
			t.Errorf("Sweep = %d, %v; want 1", n, err)
		}
		harness.WantToken(t, harness.MustAcquire(t, leases, "gone"), "gone", 2)
	})
}

// A key's tokens are those of the ledger, and never fall.
func TestLeaseTokensGoOnFromTheLedger(t *testing.T) {
	eachLeases(t, func(t *testing.T, b harness.Base, db *sql.DB, leases *lease.Leases) {
		store := harness.NewStore(t, db)
		harness.IssueToken(t, store, "jobs")
		l := harness.MustAcquire(t, leases, "jobs")
		harness.WantToken(t, l, "jobs", 2)
		harness.MustRelease(t, l)
		if err := store.Adopt(t.Context(), sqlfence.Token{Name: "jobs", Value: 40}); err != nil {
			t.Fatal(err)
		}
		l = harness.MustAcquire(t, leases, "jobs")
		harness.WantToken(t, l, "jobs", 41)
		harness.MustRelease(t, l)
		harness.MustExec(t, db, "DELETE FROM fencing_leases")
		harness.WantToken(t, harness.MustAcquire(t, leases, "jobs"), "jobs", 42)
	})
}

func TestLeaseSameOwner(t *testing.T) {
	eachLeases(t, func(t *testing.T, b harness.Base, db *sql.DB, leases *lease.Leases) {
		me := lease.Resume("me")
		l := harness.MustAcquire(t, leases, "jobs", me, lease.TTL(30*time.Minute))
		again := harness.MustAcquire(t, harness.NewLeases(t, db), "jobs", me, lease.TTL(time.Hour))
		if again.Token() != l.Token() || again.LockID() != l.LockID() || !again.ExpiresAt().Equal(l.ExpiresAt()) {
			t.Errorf("asked again: %v %v, want %v %v", again.Token(), again.ExpiresAt(), l.Token(), l.ExpiresAt())
		}
		again = harness.MustAcquire(t, leases, "jobs", me, lease.TTL(time.Hour), lease.Refresh())
		if again.Token() != l.Token() || again.LockID() != l.LockID() || again.ExpiresAt().Sub(l.ExpiresAt()) < 29*time.Minute {
			t.Errorf("refreshed: %v %v, want %v an hour later", again.Token(), again.ExpiresAt(), l.Token())
		}
		if _, ok, err := leases.TryAcquire(t.Context(), "jobs", lease.Resume("you")); ok || err != nil {
			t.Errorf("another owner: %v, %v", ok, err)
		}
		if _, ok, err := leases.TryAcquire(t.Context(), "jobs"); ok || err != nil {
			t.Errorf("no owner: %v, %v", ok, err)
		}
		harness.WantLedger(t, db, "jobs=1")
		harness.MustRelease(t, again)
		harness.WantToken(t, harness.MustAcquire(t, leases, "jobs", me), "jobs", 2)
	})
}
