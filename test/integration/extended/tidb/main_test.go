// Package tidb_test tests which rules hold on TiDB and which are refused. TiDB speaks MySQL's protocol, but its
// transactions differ.
package tidb_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/need"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// serverDSN returns the DSN of the test server.
func serverDSN(t testing.TB) string {
	t.Helper()
	return need.Server(t, "TIDB", "make tidb")
}

// A session is a set of session variables for a pool's connections.
type session struct {
	name   string
	params map[string]string
}

// sessions are the combinations of transaction mode and isolation level. They determine how a statement locks and reads
// rows.
var sessions = []session{
	{"pessimistic, repeatable read", map[string]string{"tidb_txn_mode": "'pessimistic'"}},
	{"pessimistic, read committed", map[string]string{"tidb_txn_mode": "'pessimistic'",
		"transaction_isolation": "'READ-COMMITTED'"}},
	{"optimistic, repeatable read", map[string]string{"tidb_txn_mode": "'optimistic'"}},
	{"optimistic, read committed", map[string]string{"tidb_txn_mode": "'optimistic'",
		"transaction_isolation": "'READ-COMMITTED'"}},
}

// others are sessions with settings that affect when TiDB detects conflicts.
var others = []session{
	{"read committed, checked when written", map[string]string{"tidb_txn_mode": "'pessimistic'",
		"transaction_isolation": "'READ-COMMITTED'", "tidb_rc_write_check_ts": "1"}},
	{"read committed, checked when read", map[string]string{"tidb_txn_mode": "'pessimistic'",
		"transaction_isolation": "'READ-COMMITTED'", "tidb_rc_read_check_ts": "1"}},
	{"pessimistic, no fair locking", map[string]string{"tidb_txn_mode": "'pessimistic'",
		"tidb_pessimistic_txn_fair_locking": "0"}},
	{"optimistic, constraints in place", map[string]string{"tidb_txn_mode": "'optimistic'",
		"tidb_constraint_check_in_place": "1"}},
	{"optimistic, sent again", map[string]string{"tidb_txn_mode": "'optimistic'",
		"tidb_disable_txn_auto_retry": "0"}},
	{"no plan cache, chunks of 32", map[string]string{"tidb_enable_prepared_plan_cache": "0",
		"tidb_max_chunk_size": "32"}},
	{"empty sql_mode", map[string]string{"sql_mode": "''"}},
}

// uncommitted are sessions without autocommit, where a single statement commits nothing. An optimistic session then
// detects no conflict yet.
var uncommitted = []session{
	{"no autocommit", map[string]string{"tidb_txn_mode": "'pessimistic'", "autocommit": "0"}},
	{"optimistic, no autocommit", map[string]string{"tidb_txn_mode": "'optimistic'", "autocommit": "0"}},
}

// with returns a DSN with the session's variables.
func (s session) with(t testing.TB, dsn string, change ...func(*mysql.Config)) string {
	t.Helper()
	return harness.MySQLWith(t, dsn, func(c *mysql.Config) {
		c.Params = s.params
		for _, change := range change {
			change(c)
		}
	})
}

// fence opens a fenced database with the session's variables, or returns nil if the server doesn't have one of the
// variables.
func (s session) fence(t testing.TB, dsn string, rules ...sqlfence.Rule) *sql.DB {
	t.Helper()
	db := fence(t, s.with(t, dsn), rules...)
	if err := db.Ping(); number(err) == unknownVariable {
		return nil
	} else if err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	return db
}

const unknownVariable = 1193

const schema = `CREATE TABLE books (id bigint PRIMARY KEY, isbn varchar(20) UNIQUE, price bigint NOT NULL DEFAULT 0,
	fence_token bigint NOT NULL DEFAULT 0, version bigint NOT NULL DEFAULT 1,
	who varchar(64), since bigint, till bigint, KEY (price));
CREATE TABLE pens (id bigint PRIMARY KEY, price bigint);
INSERT INTO pens VALUES (1, 11), (2, 12), (3, 13);
CREATE TABLE fencing_tokens (name varbinary(512) NOT NULL PRIMARY KEY, token bigint NOT NULL)`

// empty creates a database for the test, and returns its DSN.
func empty(t testing.TB) string {
	t.Helper()
	server := serverDSN(t)
	admin := open(t, server)
	name := "sqlfence_" + strings.ToLower(rand.Text())
	exec(t, admin, "CREATE DATABASE "+name)
	t.Cleanup(func() { exec(t, admin, "DROP DATABASE "+name) })
	return harness.MySQLWith(t, server, func(c *mysql.Config) { c.DBName = name })
}

// setup creates a database with tables.
func setup(t testing.TB) (dsn string, plain *sql.DB) {
	t.Helper()
	dsn = empty(t)
	plain = open(t, dsn)
	for s := range strings.SplitSeq(schema, ";") {
		exec(t, plain, s)
	}
	return dsn, plain
}

func open(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	return harness.CloseAtEnd(t, db, err)
}

func fence(t testing.TB, dsn string, rules ...sqlfence.Rule) *sql.DB {
	t.Helper()
	db, err := sqlfence.Open("mysql", dsn, sqlfence.WithTable("books", rules...))
	return harness.CloseAtEnd(t, db, err)
}

type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func exec(t testing.TB, db execer, query string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(context.Background(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// holding returns a context with tokens for the table and for its first row.
func holding(value int64) context.Context {
	return sqlfence.WithFence(context.Background(), sqlfence.Token{Name: "books", Value: value},
		sqlfence.Token{Name: "books/1", Value: value})
}

// number returns the number of a server error.
func number(err error) uint16 {
	if e := (*mysql.MySQLError)(nil); errors.As(err, &e) {
		return e.Number
	}
	return 0
}

// gaveUp reports whether the server has ended a transaction because of a conflict: a deadlock, a lock timeout, or a row
// that another transaction has written.
func gaveUp(err error) bool {
	switch number(err) {
	case 1213, 1205, 9007, 8002, 8022, 8028, 8005:
		return !errors.Is(err, sqlfence.ErrUnknownOutcome)
	}
	return false
}
