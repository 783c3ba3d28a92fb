package lease_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlfence/sqlfence/internal/test/fakedb"
	"github.com/sqlfence/sqlfence/lease"
)

// advisoryLocks counts the statements that take an advisory lock of a session.
func advisoryLocks(d *database) int {
	locked := 0
	for _, c := range d.Sent() {
		if strings.HasPrefix(c.Query, "SELECT pg_catalog.pg_advisory_lock(") {
			locked++
		}
	}
	return locked
}

// endSessions ends the sessions of ephemeral leases on the server.
func (s *server) endSessions() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.locks)
}

func (s *server) sessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.locks)
}

// Ephemeral leases share a session, which stays open as long as a lease of the session is held.
func TestEphemeralLeasesShareASession(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		one := acquire(t, leases, "one", lease.Ephemeral())
		two := acquire(t, leases, "two", lease.Ephemeral())
		plain := acquire(t, leases, "plain")
		all, err := leases.List(t.Context())
		if err != nil || len(all) != 3 {
			t.Fatal(all, err)
		}
		for _, info := range all {
			if want := info.Key != "plain" && d.server != nil; info.Ephemeral != want {
				t.Errorf("%s: ephemeral %v, want %v", info.Key, info.Ephemeral, want)
			}
		}
		locked := advisoryLocks(d)
		if d.server == nil {
			if locked != 0 {
				t.Error("SQLite was asked for an advisory lock")
			}
			return
		}
		if in := d.db.Stats().InUse; locked != 1 || in != 1 {
			t.Errorf("%d sessions, %d connections in use", locked, in)
		}
		release(t, one)
		if d.server.sessions() != 1 {
			t.Error("the session has ended before its last lease")
		}
		release(t, two)
		if in := d.db.Stats().InUse; d.server.sessions() != 0 || in != 0 {
			t.Errorf("%d sessions, %d connections in use", d.server.sessions(), in)
		}
		release(t, plain)
	})
}

// Ephemeral leases end with their session. The next attempt opens a new session.
func TestEphemeralEndsWithItsSession(t *testing.T) {
	onPostgres(t, func(t *testing.T, d *database) {
		leases, another := d.ready(t), d.new(t)
		l := acquire(t, leases, "k", lease.Ephemeral())
		unaware := acquire(t, leases, "unaware", lease.Ephemeral()) // isn't told that the session has ended
		acquire(t, leases, "plain")
		if free(t, leases, "k") {
			t.Error("it is free")
		}
		d.server.endSessions()
		if !free(t, leases, "k") || free(t, leases, "plain") {
			t.Error("the wrong leases have ended")
		}
		taken := acquire(t, another, "k")
		if taken.Token().Value != 2 {
			t.Errorf("the next token is %v", taken.Token())
		}
		if err := l.Extend(t.Context(), time.Second); !errors.Is(err, lease.ErrLeaseLost) {
			t.Errorf("Extend: %v", err)
		}
		d.Sent()
		next := acquire(t, leases, "other", lease.Ephemeral())
		if locked := advisoryLocks(d); locked != 1 || next.Token().Value != 1 {
			t.Errorf("%d new sessions, token %v", locked, next.Token())
		}
		release(t, next)
		if err := unaware.Release(t.Context()); !errors.Is(err, lease.ErrNotHeld) {
			t.Errorf("Release: %v", err)
		}
	})
}

// After any attempt a session without a lease goes back to the pool.
func TestEphemeralLeavesNoSession(t *testing.T) {
	onPostgres(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		check := func(when string) {
			t.Helper()
			synctest.Wait()
			if in := d.db.Stats().InUse; d.server.sessions() != 0 || in != 0 {
				t.Errorf("%s: %d sessions, %d connections in use", when, d.server.sessions(), in)
			}
		}
		held := acquire(t, leases, "k", lease.Resume("me"), lease.TTL(time.Minute))
		if _, ok, err := leases.TryAcquire(t.Context(), "k", lease.Ephemeral()); ok || err != nil {
			t.Errorf("held: %v, %v", ok, err)
		}
		check("held by another")
		if l := acquire(t, leases, "k", lease.Resume("me"), lease.Ephemeral()); l.LockID() != held.LockID() {
			t.Error("the owner got another lease")
		}
		check("the owner's lease needs none")
		l := acquire(t, leases, "short", lease.Ephemeral(), lease.TTL(time.Second))
		<-l.Done()
		check("expired")
		d.failing(func(_ context.Context, c fakedb.Call) error {
			if isAcquire(c) {
				return stateError("42703")
			}
			return nil
		})
		if _, err := leases.Acquire(t.Context(), "other", lease.Ephemeral()); err == nil {
			t.Error("acquired")
		}
		check("failed")
		d.failing(func(_ context.Context, c fakedb.Call) error {
			if strings.Contains(c.Query, "pg_advisory_lock(") {
				return errLost
			}
			return nil
		})
		if _, err := leases.Acquire(t.Context(), "other", lease.Ephemeral()); !errors.Is(err, errLost) {
			t.Errorf("no session: %v", err)
		}
		check("no session")
	})
}

// A connection that may still hold the lock doesn't go back to the pool.
func TestEphemeralSessionThatCannotBeEnded(t *testing.T) {
	onPostgres(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		l := acquire(t, leases, "k", lease.Ephemeral())
		session := 0
		d.failing(func(_ context.Context, c fakedb.Call) error {
			if strings.Contains(c.Query, "pg_advisory_unlock(") {
				session = c.Conn
				return errLost
			}
			return nil
		})
		release(t, l)
		d.Sent()
		for range 3 {
			if !free(t, leases, "k") {
				t.Error("it isn't free")
			}
		}
		for _, c := range d.Sent() {
			if c.Conn == session {
				t.Error("the session's connection is used again")
			}
		}
	})
}
