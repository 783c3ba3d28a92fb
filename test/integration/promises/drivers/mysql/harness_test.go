package mysql_test

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence/test/integration/harness"
)

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

// besideMySQL runs do with the driver alone and with sqlfence around it, each on a separate database. Both results of
// do must equal want.
func besideMySQL(t *testing.T, change func(*mysql.Config), want string, do func(t *testing.T, db *sql.DB) string) {
	t.Helper()
	for name, open := range map[string]func(testing.TB, string) *sql.DB{
		"raw":    harness.MySQL.Raw,
		"fenced": func(t testing.TB, dsn string) *sql.DB { return harness.MySQL.Fenced(t, dsn) },
	} {
		db := open(t, mysqlWith(t, harness.MySQLDatabase(t), change))
		createPens(t, db)
		if got := do(t, db); got != want {
			t.Errorf("%s: %s\nwant: %s", name, got, want)
		}
	}
}

// mysqlPens opens a database with the driver alone, with a table of pens.
func mysqlPens(t *testing.T, change func(*mysql.Config)) *sql.DB {
	t.Helper()
	db := harness.MySQL.Raw(t, mysqlWith(t, harness.MySQLDatabase(t), change))
	createPens(t, db)
	return db
}

func createPens(t *testing.T, db *sql.DB) {
	t.Helper()
	if _, err := db.Exec("CREATE TABLE pens (id BIGINT UNSIGNED PRIMARY KEY AUTO_INCREMENT, price INT, made DATETIME(6))"); err != nil {
		t.Fatal(err)
	}
}

// saw joins the values that a test observed; an error is shown with its type.
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

func countRows(t *testing.T, r harness.Runner, query string, args ...any) (n int) {
	t.Helper()
	if err := r.QueryRowContext(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
