package drivers

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence"
)

// mysqlBase stands apart from bases: tables can't be registered for MySQL, so it
// has only the tests of what sqlfence leaves alone.
var mysqlBase = base{"mysql", "mysql", sqlfence.MySQL}

// mysqlDSN returns the MySQL or MariaDB server to test on, as postgresDSN does
// for PostgreSQL.
func mysqlDSN(t testing.TB) string {
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

// mysqlDatabase creates a database and returns its DSN.
func mysqlDatabase(t testing.TB) string {
	t.Helper()
	dsn := mysqlDSN(t)
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	name := "sqlfence_" + strings.ToLower(rand.Text())
	admin := mysqlBase.raw(t, dsn)
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

// mysqlWith returns the DSN with parameters changed.
func mysqlWith(t testing.TB, dsn string, change func(*mysql.Config)) string {
	t.Helper()
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(cfg)
	}
	return cfg.FormatDSN()
}

// besideMySQL runs do with the driver alone and with sqlfence around it, each on
// a database of its own. do tells what it saw, which must be want both times.
func besideMySQL(t *testing.T, change func(*mysql.Config), want string, do func(t *testing.T, db *sql.DB) string) {
	t.Helper()
	for name, open := range map[string]func(testing.TB, string) *sql.DB{
		"raw":    mysqlBase.raw,
		"fenced": func(t testing.TB, dsn string) *sql.DB { return mysqlBase.fenced(t, dsn) },
	} {
		db := open(t, mysqlWith(t, mysqlDatabase(t), change))
		createPens(t, db)
		if got := do(t, db); got != want {
			t.Errorf("%s: %s\nwant: %s", name, got, want)
		}
	}
}

// mysqlPens opens a database with the driver alone, with a table of pens.
func mysqlPens(t *testing.T, change func(*mysql.Config)) *sql.DB {
	t.Helper()
	db := mysqlBase.raw(t, mysqlWith(t, mysqlDatabase(t), change))
	createPens(t, db)
	return db
}

func createPens(t *testing.T, db *sql.DB) {
	t.Helper()
	if _, err := db.Exec("CREATE TABLE pens (id BIGINT UNSIGNED PRIMARY KEY AUTO_INCREMENT, price INT, made DATETIME(6))"); err != nil {
		t.Fatal(err)
	}
}

// saw joins what a test saw; an error is told by its type as well.
func saw(values ...any) string {
	var b strings.Builder
	for _, v := range values {
		if err, ok := v.(error); ok {
			fmt.Fprintf(&b, "%T: ", err)
		}
		fmt.Fprintf(&b, "%v; ", v)
	}
	return b.String()
}

func countRows(t *testing.T, r runner, query string, args ...any) (n int) {
	t.Helper()
	if err := r.QueryRowContext(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
