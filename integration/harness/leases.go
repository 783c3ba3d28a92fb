package harness

import (
	"database/sql"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
)

// NewLeases returns leases on db with their tables set up.
func NewLeases(t testing.TB, db *sql.DB, opts ...lease.Option) *lease.Leases {
	t.Helper()
	leases, err := lease.New(db, opts...)
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
