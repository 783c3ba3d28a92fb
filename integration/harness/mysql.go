package harness

import (
	"context"
	"crypto/rand"
	"database/sql"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence"
)

// MySQL stands apart from Bases: tables can't be registered for MySQL, so it
// has only the tests of what sqlfence leaves alone.
var MySQL = Base{"mysql", "mysql", sqlfence.MySQL, 0}

// MySQLDSN returns the MySQL or MariaDB server to test on, as PostgresDSN does
// for PostgreSQL.
func MySQLDSN(t testing.TB) string {
	t.Helper()
	dsn := os.Getenv("SQLFENCE_MYSQL_DSN")
	if dsn == "" {
		const hint = "SQLFENCE_MYSQL_DSN is not set; run scripts/with-mariadb go test ./..."
		if os.Getenv("SQLFENCE_REQUIRE_MYSQL") == "1" {
			t.Fatal(hint)
		}
		t.Skip(hint)
	}
	return dsn
}

// MySQLDatabase creates a database and returns its DSN.
func MySQLDatabase(t testing.TB) string {
	t.Helper()
	dsn := MySQLDSN(t)
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	name := "sqlfence_" + strings.ToLower(rand.Text())
	admin := MySQL.Raw(t, dsn)
	if _, err := admin.Exec("CREATE DATABASE " + name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The limit turns a transaction that the test left open into a failure
		// instead of a hang.
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if _, err := admin.ExecContext(ctx, "DROP DATABASE "+name); err != nil {
			t.Errorf("dropping the test's database: %v", err)
		}
	})
	cfg.DBName = name
	return cfg.FormatDSN()
}

// MySQLWith returns a DSN with its configuration changed.
func MySQLWith(t testing.TB, dsn string, change func(*mysql.Config)) string {
	t.Helper()
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	change(cfg)
	return cfg.FormatDSN()
}

// mysqlAtLevel: MariaDB had another name for it before version 11.1.
func mysqlAtLevel(t testing.TB, dsn string, level sql.IsolationLevel) string {
	t.Helper()
	var name, value string
	const known = "SHOW VARIABLES WHERE variable_name IN ('tx_isolation', 'transaction_isolation')"
	if err := MySQL.Raw(t, dsn).QueryRow(known).Scan(&name, &value); err != nil {
		t.Fatal(err)
	}
	return MySQLWith(t, dsn, func(c *mysql.Config) {
		if c.Params == nil {
			c.Params = make(map[string]string)
		}
		c.Params[name] = "'" + strings.ToUpper(strings.ReplaceAll(level.String(), " ", "-")) + "'"
	})
}
