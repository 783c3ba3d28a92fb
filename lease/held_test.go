package lease_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
	"github.com/sqlfence/sqlfence/lease"
)

// A lease ends in the process when it ends in the database, without a query.
func TestLeaseExpires(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		l := acquire(t, leases, "k", lease.TTL(time.Second))
		time.Sleep(time.Second - 1)
		if l.Err() != nil || free(t, leases, "k") {
			t.Errorf("it has ended early: %v", l.Err())
		}
		d.Sent()
		start := time.Now()
		<-l.Done()
		took(t, start, 1)
		var lost *lease.LostError
		if err := context.Cause(l.Context()); !errors.As(err, &lost) || !errors.Is(err, lease.ErrLeaseLost) || lost.Token != l.Token() || lost.Temporary() {
			t.Errorf("the cause is %v", err)
		}
		if l.Err() != error(lost) {
			t.Errorf("Err: %v", l.Err())
		}
		if err := l.Extend(t.Context(), time.Second); !errors.Is(err, lease.ErrLeaseLost) {
			t.Errorf("Extend: %v", err)
		}
		if err := l.Release(t.Context()); !errors.Is(err, lease.ErrLeaseLost) || d.count() != 0 {
			t.Errorf("Release: %v", err)
		}
		if !free(t, leases, "k") {
			t.Error("it lives on in the database")
		}
		if next := acquire(t, leases, "k"); next.Token().Value != 2 {
			t.Errorf("the next token is %v", next.Token())
		}
	})
}

// With a margin, the lease ends for its holder before it ends in the database.
func TestMarginEndsTheLeaseEarlier(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t, lease.WithDefaults(lease.Margin(2*time.Second)))
		l := acquire(t, leases, "k", lease.TTL(10*time.Second))
		if until := time.Now().Add(10 * time.Second); !l.ExpiresAt().Equal(until) {
			t.Errorf("until %v, want %v", l.ExpiresAt(), until)
		}
		if err := l.Extend(t.Context(), 2*time.Second); !errors.Is(err, lease.ErrInvalid) || l.Err() != nil {
			t.Errorf("Extend by the margin: %v", err)
		}
		time.Sleep(time.Second)
		if err := l.Extend(t.Context(), 10*time.Second); err != nil {
			t.Fatal(err)
		}
		time.Sleep(8*time.Second - 1)
		if l.Err() != nil {
			t.Errorf("it has ended early: %v", l.Err())
		}
		start := time.Now()
		<-l.Context().Done()
		took(t, start, 1)
		if err := l.Err(); !errors.Is(err, lease.ErrLeaseLost) || !isClosed(l.Done()) || free(t, leases, "k") {
			t.Errorf("in the margin: %v", err)
		}
		time.Sleep(2 * time.Second)
		if !free(t, leases, "k") {
			t.Error("others wait longer than the ttl")
		}

		// Do beats often enough, and ends early when it can't.
		start = time.Now()
		err := leases.Do(t.Context(), "k", func(ctx context.Context) error {
			time.Sleep(time.Minute)
			if ctx.Err() != nil {
				t.Errorf("lost: %v", context.Cause(ctx))
			}
			start = time.Now()
			d.failing(func(context.Context, fakedb.Call) error { return errLost })
			<-ctx.Done()
			return nil
		}, lease.TTL(3*time.Second))
		d.failing(nil)
		if took := time.Since(start); !errors.Is(err, lease.ErrLeaseLost) || took > time.Second {
			t.Errorf("Do: %v after %v, want at most the ttl without the margin", err, took)
		}
	})
}

func TestLeaseExtend(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		l := acquire(t, leases, "k", lease.TTL(time.Second))
		expires := func() time.Time {
			info, ok, err := leases.Lookup(t.Context(), "k")
			if err != nil || !ok || !info.ExpiresAt.Equal(l.ExpiresAt()) {
				t.Errorf("the database says %v, %v, %v; the lease %v", info, ok, err, l.ExpiresAt())
			}
			return info.ExpiresAt
		}
		time.Sleep(900 * time.Millisecond)
		if err := l.Extend(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		if want := time.Now().Add(time.Minute); !expires().Equal(want) {
			t.Errorf("extended until %v, want %v", expires(), want)
		}
		time.Sleep(time.Minute - 1)
		if l.Err() != nil {
			t.Errorf("extended, but: %v", l.Err())
		}
		if err := l.Extend(t.Context(), 10*time.Millisecond); err != nil { // also shorter
			t.Fatal(err)
		}
		expires()
		start := time.Now()
		<-l.Done()
		took(t, start, 10*time.Millisecond)
	})
}

// If Extend fails with an error of the database, the lease is still held. Its TTL may have been set, so the lease ends
// at the earlier of both ends. Then Err has the database's error.
func TestLeaseExtendFails(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		l := acquire(t, leases, "k", lease.TTL(time.Minute))
		d.failing(func(context.Context, fakedb.Call) error { return errLost })
		if err := l.Extend(t.Context(), time.Second); !errors.Is(err, errLost) || l.Err() != nil {
			t.Errorf("Extend: %v, then %v", err, l.Err())
		}
		start := time.Now()
		<-l.Done()
		took(t, start, time.Second)
		if err := l.Err(); !errors.Is(err, lease.ErrLeaseLost) || !errors.Is(err, errLost) || !strings.Contains(err.Error(), "not extended in time") {
			t.Errorf("lost: %v", err)
		}
	})
}

// An extension without a response may reach the server after a later extension, for two minutes. Until then, the lease
// ends for its holder as if it had.
func TestLeaseEndsForItsHolderBeforeALateExtension(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		l := acquire(t, leases, "k", lease.TTL(time.Minute))
		extend := func(ttl time.Duration) {
			t.Helper()
			if err := l.Extend(t.Context(), ttl); err != nil {
				t.Error(err)
			}
		}
		d.failing(func(context.Context, fakedb.Call) error { return errLost })
		if err := l.Extend(t.Context(), time.Minute); !errors.Is(err, errLost) {
			t.Fatal(err)
		}
		d.failing(nil)
		for range 5 {
			time.Sleep(30 * time.Second)
			extend(time.Hour)
		}
		time.Sleep(30 * time.Minute)
		if l.Err() != nil {
			t.Errorf("after the last extension without a late one: %v", l.Err())
		}
		d.failing(func(context.Context, fakedb.Call) error { return errLost })
		if err := l.Extend(t.Context(), time.Second); !errors.Is(err, errLost) {
			t.Fatal(err)
		}
		d.failing(nil)
		extend(time.Hour)
		if _, err := leases.Extend(t.Context(), l.LockID(), time.Second); err != nil { // the late one
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if !free(t, leases, "k") {
			t.Error("another holder can't take the lease")
		}
		if l.Err() == nil {
			t.Error("the lease is held, and another holder could take it")
		}
	})
}

// Concurrent calls of Extend are sent one by one, and the answers arrive in the order of the updates.
func TestLeaseExtendsOneAfterTheOther(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		l := acquire(t, leases, "k")
		slow := make(chan struct{})
		d.failing(func(_ context.Context, c fakedb.Call) error {
			if isExtend(c) {
				<-slow
			}
			return nil
		})
		done := make(chan error, 1)
		go func() { done <- l.Extend(t.Context(), time.Minute) }()
		synctest.Wait()
		limited, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := l.Extend(limited, time.Second); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the second: %v, want it to wait", err)
		}
		close(slow)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestExtendAndReleaseByID(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases, ctx := d.ready(t), t.Context()
		l := acquire(t, leases, "k", lease.TTL(time.Minute))
		until, err := leases.Extend(ctx, l.LockID(), time.Hour)
		if want := time.Now().Add(time.Hour); err != nil || !until.Equal(want) {
			t.Errorf("extended until %v, %v; want %v", until, err, want)
		}
		check := func(what string, err error, expired bool) {
			t.Helper()
			var e *lease.NotHeldError
			if !errors.As(err, &e) || !errors.Is(err, lease.ErrNotHeld) || e.Expired != expired {
				t.Errorf("%s: %v, want ErrNotHeld, expired: %v", what, err, expired)
			}
		}
		const foreign = "AAAAAAAAAAAAAAAAAAAAAA"
		_, err = leases.Extend(ctx, foreign, time.Second)
		check("a foreign id", err, false)
		check("a foreign id", leases.Release(ctx, foreign), false)
		if free(t, leases, "k") {
			t.Error("a foreign id has released it")
		}
		if err := leases.Release(ctx, l.LockID()); err != nil || !free(t, leases, "k") {
			t.Errorf("Release: %v", err)
		}
		check("released twice", leases.Release(ctx, l.LockID()), false)

		l = acquire(t, leases, "k", lease.TTL(time.Second))
		time.Sleep(time.Second)
		check("released late", leases.Release(ctx, l.LockID()), true)
		_, err = leases.Extend(ctx, l.LockID(), time.Second)
		check("extended late", err, true)
		var e *lease.NotHeldError
		if errors.As(err, &e); e.LockID != l.LockID() {
			t.Errorf("the id is %q", e.LockID)
		}
	})
}

// A lease that is released by its lock id is lost for the holder.
func TestLeaseTakenAway(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		l := acquire(t, leases, "k")
		if err := leases.Release(t.Context(), l.LockID()); err != nil {
			t.Fatal(err)
		}
		if l.Err() != nil {
			t.Errorf("it knows already: %v", l.Err())
		}
		err := l.Extend(t.Context(), time.Second)
		if !errors.Is(err, lease.ErrLeaseLost) || !errors.Is(err, lease.ErrNotHeld) || !isClosed(l.Done()) {
			t.Errorf("Extend: %v", err)
		}
	})
}

// A standby may not know a lease that was taken a moment ago. So calls that must decide fail on a standby, with or
// without a lease of the key. List and other calls for display return the answer.
func TestStandbyDecidesNothing(t *testing.T) {
	onPostgres(t, func(t *testing.T, d *database) {
		leases, ctx := d.ready(t), t.Context()
		l := acquire(t, leases, "one")
		d.server.standby = true
		for name, look := range map[string]func() (bool, error){
			"held":           func() (bool, error) { return leases.IsLocked(ctx, "one") },
			"free":           func() (bool, error) { return leases.IsLocked(ctx, "two") },
			"by the lock id": func() (ok bool, err error) { _, ok, err = leases.LookupID(ctx, l.LockID()); return ok, err },
			"an ended one": func() (ok bool, err error) {
				_, ok, err = leases.LookupID(ctx, strings.Repeat("A", 22))
				return ok, err
			},
		} {
			if ok, err := look(); ok || !errors.Is(err, sqlfence.ErrStandby) {
				t.Errorf("%s: %v, %v; want ErrStandby", name, ok, err)
			}
		}
		if all, err := leases.List(ctx); err != nil || len(all) != 1 {
			t.Errorf("List: %v, %v", all, err)
		}
		for info, err := range leases.Watch(ctx, "one", time.Hour) {
			if err != nil || info.Key != "one" {
				t.Errorf("Watch: %v, %v", info, err)
			}
			break
		}
	})
}

func TestLookup(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases, ctx := d.ready(t), t.Context()
		one := acquire(t, leases, "one", lease.Resume("me"), lease.TTL(time.Minute))
		two := acquire(t, leases, "two", lease.TTL(time.Second))
		three := acquire(t, leases, "three")
		release(t, three)
		want := lease.Info{Key: "one", LockID: one.LockID(), Holder: "me", Token: one.Token(), AcquiredAt: one.AcquiredAt(), ExpiresAt: one.ExpiresAt()}
		for name, look := range map[string]func() (lease.Info, bool, error){
			"by key":      func() (lease.Info, bool, error) { return leases.Lookup(ctx, "one") },
			"by lock id":  func() (lease.Info, bool, error) { return leases.LookupID(ctx, one.LockID()) },
			"by the list": func() (lease.Info, bool, error) { all, err := leases.List(ctx); return all[0], len(all) == 2, err },
		} {
			info, ok, err := look()
			if err != nil || !ok || !info.AcquiredAt.Equal(want.AcquiredAt) || !info.ExpiresAt.Equal(want.ExpiresAt) {
				t.Errorf("%s: %v, %v, %v", name, info, ok, err)
			}
			info.AcquiredAt, info.ExpiresAt = want.AcquiredAt, want.ExpiresAt
			if info != want {
				t.Errorf("%s: %+v, want %+v", name, info, want)
			}
		}
		gone := func(when string, l *lease.Lease) {
			t.Helper()
			_, byKey, err := leases.Lookup(ctx, l.Key())
			_, byID, err2 := leases.LookupID(ctx, l.LockID())
			if byKey || byID || err != nil || err2 != nil || !free(t, leases, l.Key()) {
				t.Errorf("%s: %v, %v, %v, %v", when, byKey, byID, err, err2)
			}
		}
		if free(t, leases, "two") {
			t.Error("two is free")
		}
		gone("released", three)
		time.Sleep(time.Second)
		gone("expired", two)
		if all, err := leases.List(ctx); err != nil || len(all) != 1 || all[0].Key != "one" {
			t.Errorf("List: %v, %v", all, err)
		}
		for i, want := range []int64{2, 0} {
			if n, err := leases.Sweep(ctx); err != nil || n != want {
				t.Errorf("sweep %d: %d, %v, want %d", i, n, err, want)
			}
		}
		if next := acquire(t, leases, "three"); next.Token().Value != 2 || one.Err() != nil || free(t, leases, "one") {
			t.Errorf("after the sweep: %v, one is %v", next.Token(), one.Err())
		}
	})
}

func TestInfoIsPrintedWithoutItsLockID(t *testing.T) {
	at := time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)
	i := lease.Info{Key: "k", LockID: "secret", Token: sqlfence.Token{Name: "k", Value: 7}, AcquiredAt: at, ExpiresAt: at.Add(time.Minute)}
	const want = "k:000000000000007 held by - since 2025-03-01T12:00:00Z until 2025-03-01T12:01:00Z"
	if i.String() != want || i.LogValue().String() != want || fmt.Sprint(i) != want {
		t.Errorf("%q, %q", i, i.LogValue())
	}
	i.Holder = "me"
	if got := i.String(); !strings.Contains(got, "held by me since") {
		t.Error(got)
	}
	var logged logs
	slog.New(slog.NewTextHandler(&logged, nil)).Info("", "lease", i)
	if got := logged.String(); strings.Contains(got, "secret") || !strings.Contains(got, "held by me") {
		t.Errorf("logged %s", got)
	}
	got, err := json.Marshal(i)
	const want2 = `{"Key":"k","Holder":"me","Token":"k:000000000000007","AcquiredAt":"2025-03-01T12:00:00Z","ExpiresAt":"2025-03-01T12:01:00Z","Ephemeral":false}`
	if err != nil || string(got) != want2 {
		t.Errorf("JSON %s, %v", got, err)
	}
}

// The printed form of a held lease has no lock id either.
func TestLeaseIsPrintedWithoutItsLockID(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		l := acquire(t, d.ready(t), "k", lease.Resume("me"), lease.TTL(time.Minute))
		if err := l.Extend(t.Context(), time.Hour); err != nil {
			t.Fatal(err)
		}
		var logged logs
		slog.New(slog.NewTextHandler(&logged, nil)).Info("", "lease", l)
		slog.New(slog.NewJSONHandler(&logged, nil)).Info("", "leases", []any{l})
		got, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		for what, text := range map[string]string{"String": l.String(), "%v": fmt.Sprint(l), "%+v": fmt.Sprintf("%+v", l), "logs": logged.String(), "JSON": string(got)} {
			if strings.Contains(text, l.LockID()) || !strings.Contains(text, "k:000000000000001") {
				t.Errorf("%s: %s", what, text)
			}
		}
		var read lease.Info
		if err := json.Unmarshal(got, &read); err != nil || read.Holder != "me" || read.Token != l.Token() || !read.ExpiresAt.Equal(l.ExpiresAt()) {
			t.Errorf("JSON %s: %+v, %v", got, read, err)
		}
	})
}
