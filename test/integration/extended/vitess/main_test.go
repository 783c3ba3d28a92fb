// Package vitess_test tests which rules hold on Vitess and which are refused. vtgate speaks MySQL's protocol, and
// divides a statement among the servers of the shards.
package vitess_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/need"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// keyspaces are one with a single shard, and one with two. In the latter the row 4 is in another shard than the rows 1
// and 2.
var keyspaces = []string{"plain", "sharded"}

// in returns the DSN of a keyspace, with session variables.
func in(t testing.TB, keyspace string, params map[string]string) string {
	t.Helper()
	return harness.MySQLWith(t, need.Server(t, "VITESS", "make vitess"), func(c *mysql.Config) {
		c.DBName, c.Params = keyspace, params
	})
}

const schema = `CREATE TABLE books (id bigint PRIMARY KEY, isbn varchar(20), price bigint NOT NULL DEFAULT 0,
	fence_token bigint NOT NULL DEFAULT 0, version bigint NOT NULL DEFAULT 1,
	who varchar(64), since bigint, till bigint, KEY (price), KEY (isbn));
CREATE TABLE pens (id bigint PRIMARY KEY, price bigint);
INSERT INTO pens (id, price) VALUES (1, 11), (2, 12), (3, 13), (4, 14)`

// setup creates the tables in a keyspace anew.
func setup(t testing.TB, keyspace string) (dsn string, plain *sql.DB) {
	t.Helper()
	dsn = in(t, keyspace, nil)
	plain = open(t, dsn)
	for _, table := range []string{"books", "pens"} {
		if keyspace == "sharded" {
			if _, err := plain.Exec("ALTER VSCHEMA ON " + table + " ADD VINDEX hash(id) USING hash"); err != nil &&
				!strings.Contains(err.Error(), "already") {
				t.Fatal(err)
			}
		}
		exec(t, plain, "DROP TABLE IF EXISTS "+table)
	}
	for s := range strings.SplitSeq(schema, ";") {
		exec(t, plain, s)
	}
	return dsn, plain
}

func reset(t testing.TB, plain *sql.DB) {
	t.Helper()
	exec(t, plain, "DELETE FROM books")
	exec(t, plain, "INSERT INTO books (id, isbn, price, fence_token, version) VALUES (1, 'a', 1, 4, 1), (2, 'b', 10, 4, 1), (4, 'c', 10, 4, 1)")
}

// content returns all rows of the table books.
func content(t testing.TB, db *sql.DB) (all string) {
	t.Helper()
	rows, err := db.Query("SELECT CONCAT_WS(':', id, isbn, price, fence_token, version, who) FROM books ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var row string
		if err := rows.Scan(&row); err != nil {
			t.Fatal(err)
		}
		all += row + " "
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func open(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	return harness.CloseAtEnd(t, db, err)
}

func fence(t testing.TB, dsn string, rules ...sqlfence.Rule) *sql.DB {
	t.Helper()
	db, err := sqlfence.Open("mysql", dsn, sqlfence.WithTable("books", rules...))
	return harness.CloseAtEnd(t, db, err)
}

type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func exec(t testing.TB, db execer, query string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(context.Background(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// holding returns a context with tokens for the table and for its first row.
func holding(value int64) context.Context {
	return sqlfence.WithFence(context.Background(), sqlfence.Token{Name: "books", Value: value},
		sqlfence.Token{Name: "books/1", Value: value})
}

// number returns the number of a server error.
func number(err error) uint16 {
	if e := (*mysql.MySQLError)(nil); errors.As(err, &e) {
		return e.Number
	}
	return 0
}

// gaveUp reports whether the server has ended a statement or transaction because of a lock of another transaction.
func gaveUp(err error) bool { return number(err) == 1213 || number(err) == 1205 }
