package lease_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
	"github.com/sqlfence/sqlfence/lease"
)

// A database is a fake that answers the statements of package lease. A test can read the statements, and can make them
// fail. A [server] recognises PostgreSQL's statements, a [file] SQLite's. The clock is the synctest bubble's, which
// moves only when all goroutines wait.
type database struct {
	*fakedb.DB
	db      *sql.DB
	dialect sqlfence.Dialect
	handle  fakedb.Handler
	server  *server // PostgreSQL's
	logged  *logs

	mu     sync.Mutex
	before func(context.Context, fakedb.Call) error // may wait, or fail instead of the database
	after  func(fakedb.Call) error                  // may take the answer away
}

// eachDatabase runs test on an empty database of each dialect, in a bubble of synctest. When the test ends, no
// connection may be in use.
func eachDatabase(t *testing.T, test func(t *testing.T, d *database)) {
	t.Helper()
	for _, dialect := range []sqlfence.Dialect{sqlfence.Postgres, sqlfence.SQLite} {
		t.Run(dialect.String(), func(t *testing.T) { on(t, dialect, test) })
	}
}

// onPostgres is eachDatabase for PostgreSQL alone.
func onPostgres(t *testing.T, test func(t *testing.T, d *database)) {
	t.Helper()
	on(t, sqlfence.Postgres, test)
}

func on(t *testing.T, dialect sqlfence.Dialect, test func(t *testing.T, d *database)) {
	synctest.Test(t, func(t *testing.T) {
		d := &database{dialect: dialect, logged: new(logs)}
		if dialect == sqlfence.Postgres {
			d.server = &server{locks: map[int64]int{}}
			d.handle = d.server.answer
		} else {
			d.handle = newFile().answer
		}
		d.DB = fakedb.New(d.answer)
		d.db = sql.OpenDB(d.DB)
		defer func() {
			time.Sleep(time.Minute) // background work ends in the meantime
			synctest.Wait()
			if n := d.db.Stats().InUse; n != 0 {
				t.Errorf("%d connections are still in use", n)
			}
			d.db.Close()
		}()
		test(t, d)
	})
}

func (d *database) answer(ctx context.Context, c fakedb.Call) (fakedb.Response, error) {
	d.mu.Lock()
	before, after := d.before, d.after
	d.mu.Unlock()
	if before != nil {
		if err := before(ctx, c); err != nil {
			if c.Kind == fakedb.Commit { // the transaction is over all the same
				c.Kind = fakedb.Rollback
				_, _ = d.handle(ctx, c)
			}
			return fakedb.Response{}, err
		}
	}
	answer, err := d.handle(ctx, c)
	if err == nil && after != nil {
		err = after(c)
	}
	return answer, err
}

// failing has the database call before each statement; nil ends it.
func (d *database) failing(before func(context.Context, fakedb.Call) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.before = before
}

// losing has the database call after each statement that succeeded, and return its error; nil ends this.
func (d *database) losing(after func(fakedb.Call) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.after = after
}

// new returns Leases on the database.
func (d *database) new(t testing.TB, opts ...lease.Option) *lease.Leases {
	t.Helper()
	leases, err := lease.New(d.db, append([]lease.Option{lease.WithDialect(d.dialect), lease.WithLogger(d.logged.logger())}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return leases
}

// ready is new, after Setup.
func (d *database) ready(t testing.TB, opts ...lease.Option) *lease.Leases {
	t.Helper()
	leases := d.new(t, opts...)
	if err := leases.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.Sent()
	d.logged.forget() // the databases of these tests have no triggers, which is logged
	return leases
}

// exec changes a table around package lease.
func (d *database) exec(t testing.TB, query string, args ...any) {
	t.Helper()
	if _, err := d.handle(t.Context(), fakedb.Call{Kind: fakedb.Exec, Query: query, Args: args}); err != nil {
		t.Fatal(err)
	}
}

// issued sets the newest token of a key.
func (d *database) issued(t testing.TB, key string, token int64) {
	t.Helper()
	if d.server != nil {
		d.server.tokens[key] = token
		return
	}
	d.exec(t, "INSERT INTO fencing_tokens (name, token) VALUES (?, ?)", key, token)
}

// count returns how many of the calls since the last [fakedb.DB.Sent] are statements.
func (d *database) count() (n int) {
	for _, c := range d.Sent() {
		if c.Kind == fakedb.Exec || c.Kind == fakedb.Query {
			n++
		}
	}
	return n
}

func isAcquire(c fakedb.Call) bool {
	return strings.Contains(c.Query, "INSERT INTO fencing_leases") && !isUndo(c) && !strings.HasPrefix(c.Query, "EXPLAIN")
}

func isUndo(c fakedb.Call) bool {
	return strings.Contains(fakedb.Plain(c.Query), "SELECT $1::text, '', 0,") || strings.Contains(c.Query, "WHERE key = ? AND lock_id = ?")
}

func isExtend(c fakedb.Call) bool {
	return strings.HasPrefix(c.Query, "UPDATE fencing_leases") && strings.Contains(c.Query, "RETURNING") && !isRelease(c)
}

func isRelease(c fakedb.Call) bool {
	return strings.HasPrefix(c.Query, "UPDATE fencing_leases") && strings.Contains(c.Query, "SET lock_id = NULL") && !isUndo(c) || isHold(c)
}

// isHold reports whether the call is a release under MinHold.
func isHold(c fakedb.Call) bool {
	return strings.HasPrefix(c.Query, "UPDATE fencing_leases") && strings.Contains(c.Query, "l.acquired_at")
}

// released is the row of a lease that is released now, and has to be held for a time.
func released(r row, release string, now time.Time, hold time.Duration) row {
	until := r.acquired.Add(hold)
	r.lockID, r.session, r.holder, r.expires = "", 0, release, now
	if hold > 0 && until.After(now) {
		r.lockID, r.holder, r.expires = release, "", until
	}
	return r
}

// isShared reports whether the call serves several callers; on PostgreSQL.
func isShared(c fakedb.Call) bool { return strings.Contains(c.Query, "json_to_recordset") }

// logs collects what a logger writes.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logs) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Reset()
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logs) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// A stateError is one of PostgreSQL's.
type stateError string

func (e stateError) Error() string { return "SQLSTATE " + string(e) }

// SQLState returns the code, which ends at the first blank.
func (e stateError) SQLState() string { code, _, _ := strings.Cut(string(e), " "); return code }

var errLost = errors.New("connection lost")

func acquire(t testing.TB, leases *lease.Leases, key string, terms ...lease.Term) *lease.Lease {
	t.Helper()
	l, err := leases.Acquire(t.Context(), key, terms...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func release(t testing.TB, l *lease.Lease) {
	t.Helper()
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// free reports whether the key has no live lease.
func free(t testing.TB, leases *lease.Leases, key string) bool {
	t.Helper()
	locked, err := leases.IsLocked(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return !locked
}

func isClosed[T any](c <-chan T) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// took fails the test unless as much time has passed since start.
func took(t testing.TB, start time.Time, want time.Duration) {
	t.Helper()
	if d := time.Since(start); d != want {
		t.Errorf("it took %v, want %v", d, want)
	}
}

func sprint(calls []fakedb.Call) string {
	var b strings.Builder
	for _, c := range calls {
		fmt.Fprintf(&b, "\n%v", c)
	}
	return b.String()
}
