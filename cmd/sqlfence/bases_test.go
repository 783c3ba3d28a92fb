package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/internal/test/need"

	"github.com/go-sql-driver/mysql"
)

func freshSQLite(t testing.TB) string {
	// The file exists before sqlfence init, as the other databases do.
	path := filepath.Join(t.TempDir(), "books.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return "sqlite:" + path + "?_pragma=busy_timeout(" + strconv.FormatInt(patience.Milliseconds(), 10) + ")"
}

// freshPostgres creates a separate database, because in a shared database tests that issue tokens of one name wait for
// each other.
func freshPostgres(t testing.TB) string {
	dsn := need.Server(t, "POSTGRES", "scripts/with-postgres")
	name := "sqlfence_cli_" + strings.ToLower(rand.Text()[:10])
	admin, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { admin.Close() })
	execute(t, admin, "CREATE DATABASE "+name)
	t.Cleanup(func() { execute(t, admin, "DROP DATABASE "+name+" WITH (FORCE)") })
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	return u.String()
}

// freshMySQL creates a database and returns its data source name.
func freshMySQL(t testing.TB) string {
	dsn := need.Server(t, "MYSQL", "scripts/with-mariadb")
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	admin, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { admin.Close() })
	name := "sqlfence_cli_" + strings.ToLower(rand.Text()[:10])
	execute(t, admin, "CREATE DATABASE "+name)
	t.Cleanup(func() { execute(t, admin, "DROP DATABASE "+name) })
	u := url.URL{Scheme: "mysql", User: url.User(cfg.User), Host: cfg.Addr, Path: "/" + name}
	if cfg.Passwd != "" {
		u.User = url.UserPassword(cfg.User, cfg.Passwd)
	}
	return u.String()
}

func execute(t testing.TB, db *sql.DB, query string) {
	if _, err := db.ExecContext(context.Background(), query); err != nil {
		t.Errorf("%s: %v", query, err)
	}
}
