package lease_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/tokens"
)

func TestSetup(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.new(t)
		if _, err := leases.Acquire(t.Context(), "books"); err == nil {
			t.Error("acquired without a table")
		}
		if err := leases.Setup(t.Context()); err != nil {
			t.Fatal(err)
		}
		release(t, acquire(t, leases, "books"))
		d.Sent()
		if err := leases.Setup(t.Context()); err != nil {
			t.Error(err)
		}
		// The statement that installs the ledger's function does nothing if the function exists.
		if sent := strings.ReplaceAll(sprint(d.Sent()), tokens.LedgerFunction(), ""); strings.Contains(sent, "CREATE") || strings.Contains(sent, "probe") && !strings.Contains(sent, "EXPLAIN") {
			t.Errorf("a second Setup changes something:%s", sent)
		}
		if !free(t, leases, "probe") {
			t.Error("Setup has left a lease")
		}
	})
}

// Setup succeeds if another process creates the table concurrently; any other failure is an error.
func TestSetupFails(t *testing.T) {
	for _, test := range []struct {
		code    string
		created bool
		want    string // part of the error; empty: none
	}{
		{"23505", true, ""},
		{"42P07", true, ""},
		{"42P07", false, "lease: setup: the table fencing_leases can't be used: SQLSTATE 42P01"},
		{"42501", true, "lease: setup: create fencing_leases: SQLSTATE 42501"},
	} {
		onPostgres(t, func(t *testing.T, d *database) {
			d.failing(func(_ context.Context, c fakedb.Call) error {
				if !strings.Contains(c.Query, "CREATE TABLE IF NOT EXISTS fencing_leases") {
					return nil
				}
				if test.created {
					d.server.leases = map[string]row{}
				}
				return stateError(test.code)
			})
			err := d.new(t).Setup(t.Context())
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%s: %v, want %q", test.code, err, test.want)
			}
		})
	}
	// A missing privilege on the table differs from a missing privilege to create a table.
	onPostgres(t, func(t *testing.T, d *database) {
		d.failing(func(_ context.Context, c fakedb.Call) error {
			if strings.HasPrefix(c.Query, "EXPLAIN") && strings.Contains(c.Query, "fencing_leases") {
				return stateError("42501")
			}
			return nil
		})
		err := d.new(t).Setup(t.Context())
		if sent := sprint(d.Sent()); err == nil || !strings.Contains(err.Error(), "fencing_leases can't be used") || strings.Contains(sent, "CREATE TABLE IF NOT EXISTS fencing_leases") {
			t.Errorf("%v, after%s", err, sent)
		}
	})
	eachDatabase(t, func(t *testing.T, d *database) {
		d.failing(func(context.Context, fakedb.Call) error { return errLost })
		if err := d.new(t).Setup(t.Context()); !errors.Is(err, errLost) {
			t.Errorf("Setup: %v", err)
		}
	})
}

// A table of an older version has no index. Where none can be added, leases work without.
func TestSetupAddsTheIndex(t *testing.T) {
	for _, test := range []struct {
		err    error
		logged bool
		want   string // part of the error; empty: none
	}{
		{nil, false, ""},
		{stateError("42P07"), false, ""}, // another's is there
		{stateError("42501"), true, ""},
		{errLost, false, "lease: setup: create an index on fencing_leases: connection lost"},
	} {
		eachDatabase(t, func(t *testing.T, d *database) {
			created := 0
			d.failing(func(_ context.Context, c fakedb.Call) error {
				if strings.HasPrefix(c.Query, "CREATE INDEX") {
					created++
					return test.err
				}
				return nil
			})
			leases := d.new(t)
			err := leases.Setup(t.Context())
			if created != 1 || test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%v: %d times created, %v, want %q", test.err, created, err, test.want)
			}
			if strings.Contains(d.logged.String(), "no index on expires_at") != test.logged {
				t.Errorf("%v: logged %s", test.err, d.logged)
			}
			release(t, acquire(t, leases, "books"))
		})
	}
}

func TestAcquireAndRelease(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		ctx, now := context.WithValue(t.Context(), caller{}, "me"), time.Now()
		l, err := leases.Acquire(ctx, "cafe\u0301")
		if err != nil {
			t.Fatal(err)
		}
		token := sqlfence.Token{Name: "caf\u00e9", Value: 1}
		if l.Key() != token.Name || l.Token() != token || len(l.LockID()) != 22 {
			t.Errorf("key %q, token %v, lock id %q", l.Key(), l.Token(), l.LockID())
		}
		if !l.AcquiredAt().Equal(now) || !l.ExpiresAt().Equal(now.Add(lease.DefaultTTL)) {
			t.Errorf("from %v to %v, want from %v for %v", l.AcquiredAt(), l.ExpiresAt(), now, lease.DefaultTTL)
		}
		if fence, ok := sqlfence.FenceFrom(l.Context(), token.Name); !ok || fence != token || l.Context().Value(caller{}) != "me" {
			t.Errorf("the context carries %v, %v", fence, ok)
		}
		if l.Err() != nil || isClosed(l.Done()) || l.Context().Err() != nil {
			t.Errorf("it has ended: %v, %v", l.Err(), l.Context().Err())
		}
		if another, ok, err := leases.TryAcquire(t.Context(), "caf\u00e9"); another != nil || ok || err != nil {
			t.Errorf("another got it: %v, %v", ok, err)
		}
		release(t, l)
		if !errors.Is(l.Err(), lease.ErrReleased) || !isClosed(l.Done()) || !errors.Is(context.Cause(l.Context()), lease.ErrReleased) {
			t.Errorf("after Release: %v, %v", l.Err(), context.Cause(l.Context()))
		}
		if err := l.Release(t.Context()); !errors.Is(err, lease.ErrReleased) {
			t.Errorf("released twice: %v", err)
		}
		next, ok, err := leases.TryAcquire(t.Context(), "caf\u00e9")
		if err != nil || !ok || next.Token().Value != 2 || next.LockID() == l.LockID() {
			t.Fatalf("the next one: %v, %v, %v", next, ok, err)
		}
		release(t, next)
		d.issued(t, "new", 41)
		if l := acquire(t, leases, "new"); l.Token().Value != 42 {
			t.Errorf("the token after 41: %v", l.Token())
		}
	})
}

type caller struct{}

// On PostgreSQL each method sends one statement. SQLite can't write to two tables by one statement, so taking a lease
// is two statements in a transaction.
func TestStatementsSent(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases, ctx := d.ready(t), t.Context()
		var l *lease.Lease
		take := 1
		if d.server == nil {
			take = 2
		}
		for _, verb := range []struct {
			name string
			want int
			call func() error
		}{
			{"acquire", take, func() (err error) { l, err = leases.Acquire(ctx, "jobs"); return err }},
			{"held", take, func() (err error) { _, _, err = leases.TryAcquire(ctx, "jobs"); return err }},
			{"extend", 1, func() error { return l.Extend(ctx, time.Minute) }},
			{"lookup", 1, func() (err error) { _, _, err = leases.Lookup(ctx, "jobs"); return err }},
			{"lookup by id", 1, func() (err error) { _, _, err = leases.LookupID(ctx, l.LockID()); return err }},
			{"is locked", 1, func() (err error) { _, err = leases.IsLocked(ctx, "jobs"); return err }},
			{"list", 1, func() (err error) { _, err = leases.List(ctx); return err }},
			{"release", 1, func() error { return l.Release(ctx) }},
			{"sweep", 1, func() (err error) { _, err = leases.Sweep(ctx); return err }},
			{"do", take + 1, func() error { return leases.Do(ctx, "jobs", func(context.Context) error { return nil }) }},
		} {
			d.Sent()
			if err := verb.call(); err != nil {
				t.Errorf("%s: %v", verb.name, err)
			}
			if got := d.count(); got != verb.want {
				t.Errorf("%s: %d statements, want %d", verb.name, got, verb.want)
			}
		}
	})
}

// Invalid arguments are refused without asking the database.
func TestInvalidArguments(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases, ctx := d.ready(t), t.Context()
		id := "AAAAAAAAAAAAAAAAAAAAAA"
		held := acquire(t, leases, "held")
		d.Sent()
		for name, call := range map[string]func() error{
			"Acquire, key":       func() error { _, err := leases.Acquire(ctx, ""); return err },
			"Acquire, term":      func() error { _, err := leases.Acquire(ctx, "k", lease.TTL(0)); return err },
			"TryAcquire, key":    func() error { _, _, err := leases.TryAcquire(ctx, "a\x00"); return err },
			"Do, key":            func() error { return leases.Do(ctx, "", func(context.Context) error { return nil }) },
			"Extend, id":         func() error { _, err := leases.Extend(ctx, "id", time.Second); return err },
			"Extend, ttl":        func() error { _, err := leases.Extend(ctx, id, 0); return err },
			"Lease.Extend, ttl":  func() error { return held.Extend(ctx, 25*time.Hour) },
			"Release, id":        func() error { return leases.Release(ctx, "id") },
			"Lookup, key":        func() error { _, _, err := leases.Lookup(ctx, ""); return err },
			"LookupID, id":       func() error { _, _, err := leases.LookupID(ctx, "id"); return err },
			"IsLocked, key":      func() error { _, err := leases.IsLocked(ctx, ""); return err },
			"several terms":      func() error { _, err := leases.Acquire(ctx, "k", lease.TTL(0), lease.Retries(-1)); return err },
			"refresh, no owner":  func() error { _, err := leases.Acquire(ctx, "k", lease.Refresh()); return err },
			"heartbeat over ttl": func() error { _, err := leases.Acquire(ctx, "k", lease.Heartbeat(time.Hour)); return err },
		} {
			if err := call(); !errors.Is(err, lease.ErrInvalid) || !errors.Is(err, sqlfence.ErrInvalid) || strings.Count(err.Error(), "lease: ") != 1 || d.count() != 0 {
				t.Errorf("%s: %v, want ErrInvalid once and nothing sent", name, err)
			}
		}
	})
}

func TestTokensRunOut(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		d.issued(t, "last", sqlfence.MaxToken)
		d.issued(t, "few", sqlfence.WarnToken-2)
		d.issued(t, "bad", -7)
		if _, err := leases.Acquire(t.Context(), "last"); !errors.Is(err, sqlfence.ErrTokenLimit) {
			t.Errorf("at the limit: %v", err)
		}
		if _, err := leases.Acquire(t.Context(), "bad"); err == nil || !strings.Contains(err.Error(), "-7") {
			t.Errorf("a negative token: %v", err)
		}
		release(t, acquire(t, leases, "few"))
		if got := d.logged.String(); got != "" {
			t.Errorf("logged too early: %s", got)
		}
		release(t, acquire(t, leases, "few"))
		if got := d.logged.String(); !strings.Contains(got, "fencing tokens are running out") || !strings.Contains(got, fmt.Sprint(int64(sqlfence.WarnToken))) {
			t.Errorf("logged: %s", got)
		}
	})
}

// The caller gets the database's error, wrapped, and the statement isn't sent again.
func TestErrorsOfTheDatabase(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases, ctx := d.ready(t), t.Context()
		l := acquire(t, leases, "held")
		broken := stateError("42703")
		d.failing(func(context.Context, fakedb.Call) error { return broken })
		for _, verb := range []struct {
			name string
			call func() error
		}{
			{"acquire", func() error { _, err := leases.Acquire(ctx, "k"); return err }},
			{"extend", func() error { return l.Extend(ctx, time.Second) }},
			{"lookup", func() error { _, err := leases.List(ctx); return err }},
			{"sweep", func() error { _, err := leases.Sweep(ctx); return err }},
			{"release", func() error { return l.Release(ctx) }},
		} {
			d.Sent()
			if err := verb.call(); !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "lease: "+verb.name) {
				t.Errorf("%s: %v", verb.name, err)
			}
			if calls := d.Sent(); len(calls) != 1 {
				t.Errorf("%s: %d calls, want 1:%s", verb.name, len(calls), sprint(calls))
			}
		}
	})
}

// raised returns an error with a code. A reason after the code adds the text that the statement's raise for this reason
// has.
func raised(c fakedb.Call, code string) error {
	code, reason, ok := strings.Cut(code, " ")
	if !ok {
		return stateError(code)
	}
	return stateError(code + " " + regexp.MustCompile("sqlfence:[A-Z2-7]{16}:"+reason+":").FindString(c.Query) + "7")
}

// A statement that failed because of a concurrent one is sent again.
func TestResentAfterAConcurrentStatement(t *testing.T) {
	for _, code := range []string{"40001", "40P01", "22P02 lease"} {
		onPostgres(t, func(t *testing.T, d *database) {
			leases := d.ready(t)
			left := 3
			d.failing(func(_ context.Context, c fakedb.Call) error {
				if isAcquire(c) && left > 0 {
					left--
					return raised(c, code)
				}
				return nil
			})
			if l := acquire(t, leases, "k"); l.Token().Value != 1 || left != 0 {
				t.Errorf("%s: token %v, %d failures left", code, l.Token(), left)
			}
			if undone := strings.Contains(sprint(d.Sent()), "VALUES ($1::text, ''"); undone {
				t.Errorf("%s: an attempt that changed nothing was undone", code)
			}
		})
	}
	onPostgres(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		d.failing(func(_ context.Context, c fakedb.Call) error {
			if isAcquire(c) {
				return stateError("22P02 sqlfence:lease:7")
			}
			return nil
		})
		if _, err := leases.Acquire(t.Context(), "k"); err == nil {
			t.Error("acquired")
		}
		if n := d.count(); n != 1 {
			t.Errorf("%d statements, want 1", n)
		}
	})
}

// A name that the snapshot is too old to see is added to the ledger first.
func TestUnseenNames(t *testing.T) {
	onPostgres(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		d.failing(func(_ context.Context, c fakedb.Call) error {
			if _, known := d.server.tokens["k"]; isAcquire(c) && !known {
				return raised(c, "22P02 unseen")
			}
			return nil
		})
		if l := acquire(t, leases, "k"); l.Token().Value != 1 {
			t.Errorf("token %v", l.Token())
		}
		broken := stateError("42501")
		d.failing(func(_ context.Context, c fakedb.Call) error {
			if isAcquire(c) {
				return raised(c, "22P02 unseen")
			}
			return broken
		})
		if _, err := leases.Acquire(t.Context(), "other"); !errors.Is(err, broken) {
			t.Errorf("a name that can't be added: %v", err)
		}
	})
}

// If a server's timeline can't be read, one warning is logged.
func TestTimelineUntold(t *testing.T) {
	onPostgres(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		d.failing(func(_ context.Context, c fakedb.Call) error {
			if strings.Contains(c.Query, "pg_walfile_name") {
				return stateError("42883")
			}
			return nil
		})
		for range 2 {
			release(t, acquire(t, leases, "k"))
		}
		if err := leases.Setup(t.Context()); err != nil {
			t.Error(err)
		}
		if got := strings.Count(d.logged.String(), `"lease: the server`); got != 1 {
			t.Errorf("logged %d times: %v", got, d.logged)
		}
	})
}
