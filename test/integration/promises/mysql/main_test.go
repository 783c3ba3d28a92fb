// Package mysql_test tests how guards work with what only MySQL and MariaDB have: the order in which they evaluate SET,
// sql_mode, both protocols, and the locks of four isolation levels.
package mysql_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A mode is a connection's settings.
type mode struct {
	name        string
	interpolate bool
	found       bool   // RowsAffected counts the found rows
	sqlMode     string // empty for the server's mode
}

var modes = []mode{
	{name: "prepared"},
	{name: "interpolated, found rows", interpolate: true, found: true},
	{name: "empty sql_mode, found rows", found: true, sqlMode: "''"},
	{name: "strict ANSI", interpolate: true, sqlMode: "'ANSI,STRICT_ALL_TABLES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,HIGH_NOT_PRECEDENCE'"},
}

// with returns a data source name with the mode.
func (m mode) with(t testing.TB, dsn string) string {
	t.Helper()
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	cfg.InterpolateParams, cfg.ClientFoundRows = m.interpolate, m.found
	if m.sqlMode != "" {
		cfg.Params = map[string]string{"sql_mode": m.sqlMode}
	}
	return cfg.FormatDSN()
}

func open(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func fence(t testing.TB, dsn string, rules ...sqlfence.Rule) *sql.DB {
	t.Helper()
	db, err := sqlfence.Open("mysql", dsn, sqlfence.WithTable("books", rules...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

const schema = `CREATE TABLE books (
	id bigint AUTO_INCREMENT PRIMARY KEY, isbn varchar(20) UNIQUE, grp int NOT NULL DEFAULT 0,
	price int NOT NULL DEFAULT 0, title varchar(40) DEFAULT 'none', touched int NOT NULL DEFAULT 0,
	fence_token bigint, serial bigint, KEY (grp)) ENGINE=InnoDB AUTO_INCREMENT=10;
CREATE TABLE pens (id bigint PRIMARY KEY, grp int, price int) ENGINE=InnoDB;
INSERT INTO pens VALUES (1, 1, 11), (2, 2, 12), (3, 1, 13);
CREATE TABLE fencing_tokens (name varbinary(512) NOT NULL PRIMARY KEY, token bigint NOT NULL) ENGINE=InnoDB`

func setup(t testing.TB) (dsn string) {
	t.Helper()
	dsn = harness.MySQLDatabase(t)
	db := open(t, dsn)
	for _, s := range strings.Split(schema, ";") {
		exec(t, db, s)
	}
	return dsn
}

type executor interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func exec(t testing.TB, db executor, query string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(context.Background(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// holding returns a context with tokens of this value, for the books and for each row.
func holding(value int64) context.Context {
	tokens := []sqlfence.Token{{Name: "books", Value: value}}
	for id := range 30 {
		tokens = append(tokens, sqlfence.Token{Name: fmt.Sprint("books/", id), Value: value})
	}
	return sqlfence.WithFence(context.Background(), tokens...)
}
