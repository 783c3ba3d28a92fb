package harness

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
)

// Patient are defaults of leases that a pause ends neither for their holder nor for who waits.
func Patient() lease.Option { return lease.WithDefaults(lease.TTL(time.Hour), lease.Timeout(Patience)) }

// NewLeases returns leases on db with their tables set up. They are Patient unless the options
// or the terms of a call say otherwise.
func NewLeases(t testing.TB, db *sql.DB, opts ...lease.Option) *lease.Leases {
	t.Helper()
	leases, err := lease.New(db, append([]lease.Option{Patient()}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	if err := leases.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	return leases
}

// MustAcquire acquires a lease that is to be had.
func MustAcquire(t testing.TB, leases *lease.Leases, key string, terms ...lease.Term) *lease.Lease {
	t.Helper()
	l, err := leases.Acquire(t.Context(), key, terms...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// MustRelease releases a lease that is still held.
func MustRelease(t testing.TB, l *lease.Lease) {
	t.Helper()
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// WantToken fails the test unless the lease has this token.
func WantToken(t testing.TB, l *lease.Lease, key string, value int64) {
	t.Helper()
	if want := (sqlfence.Token{Name: key, Value: value}); l.Token() != want {
		t.Errorf("token = %v, want %v", l.Token(), want)
	}
}

// releaseLimit is how long the end of a Do or an Election waits for the answer to its release.
const releaseLimit = 5 * time.Second

// ReleaseLate releases the lease of a token that a Do or an Election has left because the answer to its
// release, which it asked for after began, was late. It reports whether it may have been.
func ReleaseLate(t testing.TB, leases *lease.Leases, token sqlfence.Token, began time.Time) bool {
	t.Helper()
	if time.Since(began) < releaseLimit {
		return false
	}
	ctx := context.WithoutCancel(t.Context()) // also at the end of the test
	info, live, err := leases.Lookup(ctx, token.Name)
	if err == nil && live && info.Token == token {
		err = leases.Release(ctx, info.LockID)
	}
	if err != nil && !errors.Is(err, lease.ErrNotHeld) { // it came after all
		t.Error(err)
	}
	return true
}
