package harness

import (
	"database/sql"
	"net/url"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
)

// A dialect is what the tests have to know of a database beside its driver.
type dialect struct {
	need       func(t testing.TB)   // skips or fails the test without a server
	levels     []sql.IsolationLevel // that a transaction may have; none where there is one
	atLevel    func(t testing.TB, dsn string, level sql.IsolationLevel) string
	networked  bool // connections may be lost
	showsWaits bool // it says who waits for whom
	bare       bool // placeholders are ? rather than $1
	otherCache int  // as [Base.Statements]: what its drivers don't have by default
	guards     bool // the tests of the Stores register tables
	function   bool // guards can ask the ledger by a stored function
}

// dialects are those of the [Stores].
var dialects = map[sqlfence.Dialect]dialect{
	sqlfence.Postgres: {
		need:   func(t testing.TB) { NeedPostgres(t) },
		levels: []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable},
		atLevel: func(_ testing.TB, dsn string, level sql.IsolationLevel) string {
			// Not by withParam: pgx takes a plus for a plus.
			return dsn + "&default_transaction_isolation=" + url.PathEscape(strings.ToLower(level.String()))
		},
		networked:  true,
		showsWaits: true,
		otherCache: 3,
		guards:     true,
		function:   true,
	},
	sqlfence.SQLite: {
		need:   func(testing.TB) {},
		bare:   true,
		guards: true,

		otherCache: -1,
	},
	sqlfence.MySQL: {
		need:      func(t testing.TB) { MySQLDSN(t) },
		levels:    []sql.IsolationLevel{sql.LevelReadUncommitted, sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable},
		atLevel:   mysqlAtLevel,
		networked: true,
		bare:      true,
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
