package verify_test

import (
	"slices"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// The findings don't depend on the session's settings, nor on how the driver sends queries.
func TestSessions(t *testing.T) {
	opts := harness.Books(allRules...)
	same := func(t *testing.T, w *world, dsn string) {
		t.Helper()
		want, got := codes(w.fresh), codes(checked(t, w.Fenced(t, dsn, opts)))
		if !slices.Equal(got, want) {
			t.Errorf("found %v, want %v", got, want)
		}
		w.exec(t, "ALTER TABLE books ADD COLUMN pen integer", "CREATE VIEW everything AS SELECT * FROM books")
		want, got = codes(w.verify(t, opts)), codes(checked(t, w.Fenced(t, dsn, opts)))
		if !slices.Equal(got, want) {
			t.Errorf("with a view: found %v, want %v", got, want)
		}
		w.exec(t, "DROP VIEW everything", "ALTER TABLE books DROP COLUMN pen")
	}
	for _, b := range harness.Bases[:2] {
		t.Run(b.Name, func(t *testing.T) {
			w := newWorld(t, b)
			params := []string{"standard_conforming_strings=off", "default_transaction_read_only=on", "default_transaction_isolation=serializable", "bytea_output=escape"}
			if b.Name == "pgx" {
				params = append(params, "default_query_exec_mode=simple_protocol", "default_query_exec_mode=exec")
			} else {
				params = append(params, "binary_parameters=yes")
			}
			for _, param := range params {
				same(t, w, w.dsn+"&"+param)
			}
		})
	}
	t.Run("mysql", func(t *testing.T) {
		w := newWorld(t, harness.MySQL)
		for _, change := range []func(*mysql.Config){
			func(c *mysql.Config) { c.InterpolateParams, c.ParseTime, c.ClientFoundRows = true, true, true },
			func(c *mysql.Config) { c.MultiStatements = true },
			func(c *mysql.Config) {
				c.Params = map[string]string{"sql_mode": "'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,IGNORE_SPACE,STRICT_ALL_TABLES'"}
			},
			func(c *mysql.Config) { c.Params = map[string]string{"collation_connection": "utf16_general_ci"} },
			func(c *mysql.Config) {
				c.Collation, c.Params = "latin1_swedish_ci", map[string]string{"charset": "latin1"}
			},
		} {
			same(t, w, harness.MySQLWith(t, w.dsn, change))
		}
	})
}
