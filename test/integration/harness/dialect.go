package harness

import (
	"context"
	"database/sql"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
)

// A dialect holds a database's properties that tests need, except the driver.
type dialect struct {
	usual     string               // the name of the base that a short run keeps to
	need      func(t testing.TB)   // skips or fails the test without a server
	levels    []sql.IsolationLevel // that a transaction may have; none where there is one
	level     sql.IsolationLevel   // that it has if it asks for none
	atLevel   func(t testing.TB, dsn string, level sql.IsolationLevel) string
	networked bool // connections may be lost
	bare      bool // placeholders are ? rather than $1
	function  bool // guards can ask the ledger by a stored function

	// snapshots: above READ COMMITTED a write of a row is refused that has changed since the
	// transaction has read it.
	snapshots bool

	// scripts: several statements of registered tables may stand in one text.
	scripts bool

	// returns: any write may return rows. Where only some may, no Form asks for them.
	returns bool

	// translate translates a test's statement into the database's SQL; nil if no translation is needed.
	translate translation

	ledgerName string // the type of the ledger's names

	// create creates tables, and the objects that guards need in addition to the ledger, in a fresh database; nil if the
	// tables are enough.
	create func(t testing.TB, dsn string, tables ...string)

	// timeType is the type of the times of locks, and constant writes one.
	timeType string
	constant func(time.Time) string

	// issue takes the next token of the books by plain SQL.
	issue func(ctx context.Context, db *sql.DB) (int64, error)

	// ledgerFirst: a guarded statement asks the ledger, and holds off the next token, before it
	// waits for a row.
	ledgerFirst bool

	// session asks for the number of a connection's session, and waiters how many wait for a
	// lock that it holds; nil where the database doesn't tell. waiting is how many wait at all.
	session string
	waiters func(t testing.TB, db *sql.DB, session int) int
	waiting func(t testing.TB, db *sql.DB) int

	// sessions asks how many sessions there are in the database.
	sessions string

	// upserts is how often a row counts that an upsert has updated.
	upserts int64

	// refuses are the writes by name, behind the fence's, that no guard is known for in a table
	// with a Key.
	refuses []string

	// variants: a statement may run on some servers of the dialect and fail on other servers.
	variants bool
}

// dialects holds the dialects of [Stores].
var dialects = map[sqlfence.Dialect]dialect{
	sqlfence.Postgres: {
		usual:    "pgx",
		need:     func(t testing.TB) { NeedPostgres(t) },
		sessions: "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()",
		levels:   []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable},
		level:    sql.LevelReadCommitted,
		atLevel: func(_ testing.TB, dsn string, level sql.IsolationLevel) string {
			// Not by withParam: pgx takes a plus for a plus.
			return dsn + "&default_transaction_isolation=" + url.PathEscape(strings.ToLower(level.String()))
		},
		networked:  true,
		function:   true,
		snapshots:  true,
		scripts:    true,
		returns:    true,
		ledgerName: "text",
		create:     postgresCreate,
		timeType:   "timestamptz",
		constant:   func(at time.Time) string { return "'" + at.Format(time.RFC3339Nano) + "'" },
		issue:      issueReturning,
		session:    "SELECT pg_backend_pid()",
		waiters:    postgresWaiters,
		waiting:    postgresWaiting,
		upserts:    1,
	},
	sqlfence.SQLite: {
		usual:      "mattn",
		need:       func(testing.TB) {},
		bare:       true,
		snapshots:  true,
		scripts:    true,
		returns:    true,
		ledgerName: "text",
		timeType:   "integer",
		constant:   func(at time.Time) string { return strconv.FormatInt(at.UnixMilli(), 10) },
		issue:      issueReturning,
		upserts:    1,
	},
	sqlfence.MySQL: {
		usual:      "mysql",
		need:       func(t testing.TB) { MySQLDSN(t) },
		sessions:   "SELECT count(*) FROM information_schema.processlist WHERE db = DATABASE()",
		levels:     []sql.IsolationLevel{sql.LevelReadUncommitted, sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable},
		level:      sql.LevelRepeatableRead,
		atLevel:    mysqlAtLevel,
		networked:  true,
		bare:       true,
		translate:  mysqlWords,
		ledgerName: "varbinary(512)",
		timeType:   "bigint",
		constant:   func(at time.Time) string { return strconv.FormatInt(at.UnixMicro(), 10) },
		issue:      mysqlIssue,
		session:    "SELECT CONNECTION_ID()",
		waiters:    mysqlWaiters,
		waiting:    func(t testing.TB, db *sql.DB) int { return mysqlWaiters(t, db, 0) }, // of nobody
		upserts:    2,

		ledgerFirst: true,

		refuses: []string{
			"ledger: insert from a query", "ledger: upsert from a query", "ledger: upsert of queries", "ledger: query",
			"ledger: insert of a key from a query", "ledger: insert with another column first",
			"row fence: upsert of queries", "row fence: insert of a key from a query",
		},
		variants: true,
	},
}

// dialect returns what the tests have to know of the base's database.
func (b Base) dialect(t testing.TB) dialect {
	t.Helper()
	d, ok := dialects[b.Dialect]
	if !ok {
		t.Fatalf("package harness knows nothing of %v", b.Dialect)
	}
	return d
}

// issueReturning increments a token and returns the new token, in one statement.
func issueReturning(ctx context.Context, db *sql.DB) (value int64, err error) {
	const query = "INSERT INTO fencing_tokens (name, token) VALUES ('books', 1) ON CONFLICT (name) DO UPDATE SET token = fencing_tokens.token + 1 RETURNING token"
	err = db.QueryRowContext(ctx, query).Scan(&value)
	return value, err
}
