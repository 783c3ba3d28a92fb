package lease_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// Every method refuses invalid arguments before it sends anything: the database has no tables, so a statement would
// fail with another error.
func TestLeaseBadInput(t *testing.T) {
	harness.EachStore(t, func(t *testing.T, b harness.Base) {
		leases, err := lease.New(b.Raw(t, b.DSN(t)))
		if err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		wantInvalid := func(what string, err error) {
			t.Helper()
			if !errors.Is(err, lease.ErrInvalid) || strings.Count(err.Error(), "lease: ") != 1 {
				t.Errorf("%s: %v, want ErrInvalid", what, err)
			}
		}
		verbs := func(what, key string, terms ...lease.Term) {
			t.Helper()
			_, err := leases.Acquire(ctx, key, terms...)
			wantInvalid("Acquire, "+what, err)
			_, _, err = leases.TryAcquire(ctx, key, terms...)
			wantInvalid("TryAcquire, "+what, err)
			wantInvalid("Do, "+what, leases.Do(ctx, key, func(context.Context) error { return nil }, terms...))
		}
		for what, key := range map[string]string{
			"empty key": "", "key of 513 bytes": strings.Repeat("k", 513), "NUL": "a\x00b", "invalid UTF-8": "a\xffb",
		} {
			verbs(what, key)
			_, _, err := leases.Lookup(ctx, key)
			wantInvalid("Lookup, "+what, err)
			_, err = leases.IsLocked(ctx, key)
			wantInvalid("IsLocked, "+what, err)
		}
		for _, ttl := range []time.Duration{0, -time.Second, 24*time.Hour + 1} {
			verbs(fmt.Sprint("ttl ", ttl), "jobs", lease.TTL(ttl))
			_, err := leases.Extend(ctx, strings.Repeat("A", 22), ttl)
			wantInvalid(fmt.Sprint("Extend, ttl ", ttl), err)
		}
		verbs("owner", "jobs", lease.Resume(""))
		for _, id := range []string{"", "short", strings.Repeat("A", 23), strings.Repeat("A", 21) + "!"} {
			_, err := leases.Extend(ctx, id, time.Second)
			wantInvalid("Extend", err)
			wantInvalid("Release", leases.Release(ctx, id))
			_, _, err = leases.LookupID(ctx, id)
			wantInvalid("LookupID", err)
		}
	})
}

// Keys that normalize to the same text are the same key, and a key of the maximum length works.
func TestLeaseKeys(t *testing.T) {
	eachLeases(t, func(t *testing.T, b harness.Base, db *sql.DB, leases *lease.Leases) {
		l := harness.MustAcquire(t, leases, "cafe\u0301")
		harness.WantToken(t, l, "caf\u00e9", 1)
		if _, ok, err := leases.TryAcquire(t.Context(), "caf\u00e9"); ok || err != nil {
			t.Errorf("the other spelling: %v, %v", ok, err)
		}
		long := strings.Repeat("k", 512)
		harness.WantToken(t, harness.MustAcquire(t, leases, long), long, 1)
		odd := "a'; DROP TABLE fencing_leases; --\n\\ %s $1 ? \U0001F512"
		harness.WantToken(t, harness.MustAcquire(t, leases, odd, lease.Resume(odd)), odd, 1)
	})
}

// If no token can be issued because the limit is reached, the attempt leaves no lease.
func TestLeaseTokenLimit(t *testing.T) {
	harness.EachLedger(t, func(t *testing.T, b harness.Base, dsn string, db *sql.DB) {
		var log bytes.Buffer
		leases := harness.NewLeases(t, db, lease.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		set := func(key string, value int64) {
			harness.MustExec(t, db, fmt.Sprintf("DELETE FROM fencing_tokens WHERE name = '%s'", key))
			harness.MustExec(t, db, fmt.Sprintf("INSERT INTO fencing_tokens (name, token) VALUES ('%s', %d)", key, value))
		}
		set("jobs", sqlfence.WarnToken-2)
		harness.MustRelease(t, harness.MustAcquire(t, leases, "jobs"))
		if log.Len() > 0 {
			t.Errorf("warned too early: %s", &log)
		}
		harness.MustRelease(t, harness.MustAcquire(t, leases, "jobs"))
		if !strings.Contains(log.String(), "running out") {
			t.Errorf("no warning at WarnToken: %q", &log)
		}
		set("jobs", sqlfence.MaxToken-1)
		l := harness.MustAcquire(t, leases, "jobs", lease.Resume("me"))
		harness.WantToken(t, l, "jobs", sqlfence.MaxToken)
		harness.MustAcquire(t, leases, "jobs", lease.Resume("me"), lease.Refresh()) // it needs no new token
		if _, ok, err := leases.TryAcquire(t.Context(), "jobs"); ok || err != nil {
			t.Errorf("while it is held: %v, %v", ok, err)
		}
		harness.MustRelease(t, l)
		set("new", sqlfence.MaxToken)
		set("over", sqlfence.MaxToken+1)
		before, _ := leases.List(t.Context())
		for _, key := range []string{"jobs", "new", "over"} {
			if _, err := leases.Acquire(t.Context(), key); !errors.Is(err, sqlfence.ErrTokenLimit) {
				t.Errorf("Acquire(%s) = %v, want ErrTokenLimit", key, err)
			}
			if locked, err := leases.IsLocked(t.Context(), key); locked || err != nil {
				t.Errorf("a lease without a token is left: %v, %v", locked, err)
			}
		}
		if after, _ := leases.List(t.Context()); len(after) != len(before) {
			t.Errorf("leases are left: %v", after)
		}
		set("negative", -1)
		if _, err := leases.Acquire(t.Context(), "negative"); err == nil || !strings.Contains(err.Error(), "negative") {
			t.Errorf("a negative token: %v", err)
		}
	})
}

// Whenever a caller's context ends, the attempt leaves no lease without a holder.
func TestLeaseCancelledAtEveryPoint(t *testing.T) {
	eachLeases(t, func(t *testing.T, b harness.Base, db *sql.DB, leases *lease.Leases) {
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for what, call := range map[string]func() error{
			"Acquire":    func() error { _, err := leases.Acquire(ended, "jobs"); return err },
			"TryAcquire": func() error { _, _, err := leases.TryAcquire(ended, "jobs"); return err },
			"Do": func() error {
				return leases.Do(ended, "jobs", func(context.Context) error { t.Error("called"); return nil })
			},
			"Lookup":  func() error { _, _, err := leases.Lookup(ended, "jobs"); return err },
			"List":    func() error { _, err := leases.List(ended); return err },
			"Extend":  func() error { _, err := leases.Extend(ended, strings.Repeat("A", 22), time.Second); return err },
			"Release": func() error { return leases.Release(ended, strings.Repeat("A", 22)) },
		} {
			if err := call(); !errors.Is(err, context.Canceled) {
				t.Errorf("%s with an ended context: %v", what, err)
			}
		}
		// The contexts end at different moments, from before the statement is sent to after its response.
		granted, refused := 0, 0
		for i := range 60 {
			key := fmt.Sprintf("jobs/%d", i)
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*50*time.Microsecond)
			l, err := leases.Acquire(ctx, key)
			cancel()
			if err == nil {
				granted++
				harness.MustRelease(t, l)
				continue
			}
			refused++
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Acquire: %v", err)
			}
		}
		t.Logf("%d granted, %d gave up", granted, refused)
		// A lease that an abandoned attempt took would live for an hour. The last statements may still be on their way.
		again := harness.NewLeases(t, db)
		for i := range 60 {
			l, err := again.Acquire(t.Context(), fmt.Sprintf("jobs/%d", i), lease.Timeout(harness.Patience), lease.Interval(10*time.Millisecond))
			if err != nil {
				t.Fatalf("jobs/%d is left behind: %v", i, err)
			}
			harness.MustRelease(t, l)
		}
	})
}

// A failed attempt that can't have taken a lease starts no goroutine to undo it.
func TestLeaseNothingToUndo(t *testing.T) {
	harness.EachStore(t, func(t *testing.T, b harness.Base) {
		db := b.Raw(t, b.DSN(t))
		leases, err := lease.New(db)
		if err != nil {
			t.Fatal(err)
		}
		for _, state := range []string{"without tables", "closed"} {
			before := runtime.NumGoroutine()
			for range 20 {
				if _, ok, err := leases.TryAcquire(t.Context(), "jobs", lease.TTL(time.Hour)); ok || err == nil {
					t.Fatalf("%s: %v, %v", state, ok, err)
				}
			}
			harness.Eventually(t, "the end of the goroutines "+state, func() bool { return runtime.NumGoroutine() < before+10 })
			db.Close()
		}
	})
}

// A lease whose Release has an ended context is soon free.
func TestLeaseReleaseUnderAnEndedContext(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		leases := harness.NewLeases(t, b.Raw(t, b.DSN(t)))
		ctx, cancel := context.WithCancel(t.Context())
		l := harness.MustAcquire(t, leases, "k", lease.TTL(time.Hour))
		cancel()
		if err := l.Release(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Release: %v", err)
		}
		harness.Eventually(t, "the release", func() bool {
			locked, err := leases.IsLocked(t.Context(), "k")
			return !locked && err == nil
		})
	})
}
