// Package servers has the database servers that tests of the examples run on.
package servers

import (
	"testing"

	"github.com/sqlfence/sqlfence/examples/internal/mysql"
	"github.com/sqlfence/sqlfence/internal/test/need"
)

// PostgresURL returns the URL of SQLFENCE_POSTGRES_DSN. Without one the test is skipped or fails: see [need.Server].
func PostgresURL(t *testing.T) string {
	t.Helper()
	return need.Server(t, "POSTGRES", "scripts/with-postgres")
}

// MySQLURL returns the data source name of SQLFENCE_MYSQL_DSN as a URL. Without one the test is skipped or
// fails: see [need.Server].
func MySQLURL(t *testing.T) string {
	t.Helper()
	url, err := mysql.URL(need.Server(t, "MYSQL", "scripts/with-mariadb"))
	if err != nil {
		t.Fatal(err)
	}
	return url
}

// Each runs a test on SQLite, for which dsn is empty, and on the servers.
func Each(t *testing.T, test func(t *testing.T, dsn string)) {
	t.Run("sqlite", func(t *testing.T) { test(t, "") })
	t.Run("pgx", func(t *testing.T) { test(t, PostgresURL(t)) })
	t.Run("mysql", func(t *testing.T) { test(t, MySQLURL(t)) })
}
