package replace_test

import (
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// eachSQLite runs a test on the bases whose REPLACE is guarded in a table with a row fence.
func eachSQLite(t *testing.T, test func(t *testing.T, b harness.Base)) {
	t.Helper()
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.SQLite {
			t.Skip("REPLACE is guarded on SQLite alone")
		}
		test(t, b)
	})
}

// table drops the table books and creates it with the columns, and executes others.
func table(t *testing.T, sh *harness.Shop, columns string, others ...string) {
	t.Helper()
	sh.Exec(t, "DROP TABLE IF EXISTS books")
	sh.Exec(t, "CREATE TABLE books ("+columns)
	for _, create := range others {
		sh.Exec(t, create)
	}
}
