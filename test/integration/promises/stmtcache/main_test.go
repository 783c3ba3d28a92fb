// Package stmtcache_test tests the cache of prepared statements that each connection has.
package stmtcache_test

import (
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// eachSQLite runs a test for SQLite's drivers, whose connections keep statements.
func eachSQLite(t *testing.T, test func(t *testing.T, b harness.Base)) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.SQLite {
			t.Skip("only SQLite keeps statements")
		}
		test(t, b)
	})
}

func TestMain(m *testing.M) {
	harness.Main(m)
}
