// Package servers has the database servers that tests of the examples run on.
package servers

import (
	"os"
	"testing"

	"github.com/sqlfence/sqlfence/examples/internal/mysql"
)

// PostgresURL returns the URL of SQLFENCE_POSTGRES_DSN. Without one the test is skipped, or fails if
// SQLFENCE_REQUIRE_POSTGRES is 1.
func PostgresURL(t *testing.T) string {
	t.Helper()
	return named(t, "SQLFENCE_POSTGRES_DSN", "SQLFENCE_REQUIRE_POSTGRES")
}

// MySQLURL returns the data source name of SQLFENCE_MYSQL_DSN as a URL. Without one the test is skipped, or fails if
// SQLFENCE_REQUIRE_MYSQL is 1.
func MySQLURL(t *testing.T) string {
	t.Helper()
	url, err := mysql.URL(named(t, "SQLFENCE_MYSQL_DSN", "SQLFENCE_REQUIRE_MYSQL"))
	if err != nil {
		t.Fatal(err)
	}
	return url
}

func named(t *testing.T, name, required string) string {
	t.Helper()
	dsn := os.Getenv(name)
	if dsn == "" {
		if os.Getenv(required) == "1" {
			t.Fatal(name + " is not set")
		}
		t.Skip(name + " is not set")
	}
	return dsn
}

// Each runs a test on SQLite, for which dsn is empty, and on the servers.
func Each(t *testing.T, test func(t *testing.T, dsn string)) {
	t.Run("sqlite", func(t *testing.T) { test(t, "") })
	t.Run("pgx", func(t *testing.T) { test(t, PostgresURL(t)) })
	t.Run("mysql", func(t *testing.T) { test(t, MySQLURL(t)) })
}
