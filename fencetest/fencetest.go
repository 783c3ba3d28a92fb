package fencetest

import (
	"context"
	"database/sql"
	"net/url"
	"path/filepath"
	"testing"

	"modernc.org/sqlite"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/tokens"
)

// A DB is a fenced SQLite database of a test. If Open, Hold or EndLease fails, the test fails at once, so only the
// test's goroutine may call them: see [testing.TB.FailNow]. All other methods are safe for concurrent use.
type DB struct {
	*sql.DB
	Tokens *tokens.Store // issues tokens in the ledger of the database
	Leases *lease.Leases // grants leases in the database

	t     testing.TB
	hooks *hooks
}

// Open returns a database with sqlfence's tables and the tables of schema, which is an SQL string of any number of
// statements. opts are options of [sqlfence.Open]. The database is a file in the test's temporary folder, and is closed
// when the test has ended. Each transaction takes the file's write lock when it begins, and a writer waits up to 5 s
// for other writers.
func Open(t testing.TB, schema string, opts ...sqlfence.Option) *DB {
	t.Helper()
	db := &DB{t: t, hooks: &hooks{}}
	// The folder has the test's name, which may have a # or ? in it.
	file := url.URL{Path: filepath.ToSlash(filepath.Join(t.TempDir(), "fencetest.db"))}
	dsn := "file:" + file.EscapedPath() + "?_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)" +
		"&_pragma=busy_timeout(5000)&_pragma=foreign_keys(1)"
	var err error
	db.DB, err = sqlfence.OpenDB(db.hooks.around(&sqlite.Driver{}, dsn), opts...)
	db.check("open", err)
	t.Cleanup(func() { _ = db.Close() })
	db.Tokens, err = tokens.New(db.DB)
	db.check("tokens", err)
	db.Leases, err = lease.New(db.DB)
	db.check("leases", err)
	db.check("set up the ledger", db.Tokens.Setup(t.Context()))
	db.check("set up the leases", db.Leases.Setup(t.Context()))
	_, err = db.ExecContext(sqlfence.Bypass(t.Context(), "fencetest: schema"), schema)
	db.check("create the schema", err)
	return db
}

func (db *DB) check(what string, err error) {
	if err != nil {
		db.t.Helper()
		db.t.Fatalf("fencetest: %s: %v", what, err)
	}
}

// Hold issues a new token for each name, and returns a context with the tokens. Earlier contexts with the same names
// are stale from then on.
func (db *DB) Hold(ctx context.Context, names ...string) context.Context {
	db.t.Helper()
	held, err := db.Tokens.IssueMany(ctx, names...)
	db.check("issue", err)
	return sqlfence.WithFence(ctx, held...)
}

// EndLease ends the lease of a key as if its TTL had passed. The holder isn't notified, as if its process were paused
// past the end of the lease. The test fails at once if there is no such lease.
func (db *DB) EndLease(ctx context.Context, key string) {
	db.t.Helper()
	result, err := db.ExecContext(sqlfence.Bypass(ctx, "fencetest: end a lease"),
		"UPDATE fencing_leases SET expires_at = 0 WHERE key = ? AND lock_id IS NOT NULL", key)
	db.check("end a lease", err)
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		db.t.Fatalf("fencetest: end a lease: %q has none, %v", key, err)
	}
}

// Before calls do once, directly before the next statement that matches text is sent to the database, on the goroutine
// that sends it. So the program seems to be paused before this statement. A statement matches text as by [Match], but
// upper and lower case don't matter; text may be the beginning of a statement. If the statement is part of a
// transaction, do must not wait for a write, because the transaction has the file's write lock.
//
// The test fails at its end if no such statement was sent.
func (db *DB) Before(text string, do func()) {
	db.t.Helper()
	h := db.hooks.add(text, do)
	db.t.Cleanup(func() {
		if !h.called.Load() {
			db.t.Errorf("fencetest: no statement was sent that has %q in it", text)
		}
	})
}
