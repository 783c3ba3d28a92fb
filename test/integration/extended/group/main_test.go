// Package group_test tests sqlfence on a group of three nodes that all accept writes: a Galera cluster or MySQL's Group
// Replication.
package group_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/need"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A cluster is a new database on three nodes.
type cluster struct {
	kind
	dsn   [3]string
	plain [3]*sql.DB // reads everything committed on any node before
}

const schema = `CREATE TABLE books (id bigint PRIMARY KEY, price bigint NOT NULL DEFAULT 0, fence_token bigint NOT NULL DEFAULT 0, serial bigint NOT NULL DEFAULT 1);
CREATE TABLE fencing_tokens (name varbinary(512) NOT NULL PRIMARY KEY, token bigint NOT NULL);
INSERT INTO books (id) VALUES (1), (2), (3)`

// start returns a cluster with [schema].
func start(t *testing.T) *cluster {
	t.Helper()
	dsns := strings.Fields(need.Server(t, "GROUP", "scripts/with-group galera go test ./extended/group"))
	if len(dsns) != 3 {
		t.Fatalf("SQLFENCE_GROUP_DSN has %d nodes, want 3", len(dsns))
	}
	name := "sqlfence_" + strings.ToLower(rand.Text())
	c := &cluster{kind: kindOf(t, dsns[0])}
	for i, dsn := range dsns {
		c.dsn[i] = harness.MySQLWith(t, dsn, func(c *mysql.Config) { c.DBName = name })
		c.plain[i] = c.reading(t, dsn)
	}
	run(t, c.plain[0], "CREATE DATABASE "+name)
	t.Cleanup(func() {
		run(t, open(t, dsns[0]), "DROP DATABASE "+name)
	})
	for i := range dsns {
		for known := false; !known; {
			if err := c.plain[i].QueryRow("SELECT COUNT(*) > 0 FROM information_schema.schemata WHERE schema_name = ?", name).Scan(&known); err != nil {
				t.Fatal(err)
			}
		}
		c.plain[i] = c.reading(t, c.dsn[i])
	}
	for s := range strings.SplitSeq(schema, ";") {
		run(t, c.plain[0], s)
	}
	for i := range dsns {
		c.price(t, i, 1)
	}
	return c
}

// price returns a row's price on a node, including everything committed before on any node.
func (c *cluster) price(t *testing.T, node, id int) (price int64) {
	t.Helper()
	if err := c.plain[node].QueryRow("SELECT price FROM books WHERE id = ?", id).Scan(&price); err != nil {
		t.Fatal(err)
	}
	return price
}

// fence opens a fenced database on a node.
func (c *cluster) fence(t *testing.T, node int, rules ...sqlfence.Rule) *sql.DB {
	t.Helper()
	db, err := sqlfence.Open("mysql", c.dsn[node], sqlfence.WithTable("books", rules...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func open(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func run(t *testing.T, db *sql.DB, query string, args ...any) {
	t.Helper()
	if _, err := db.Exec(query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func holding(value int64) context.Context {
	return sqlfence.WithFence(context.Background(), sqlfence.Token{Name: "books", Value: value})
}

// rounds returns how often a race runs. SQLFENCE_GROUP_ROUNDS sets another number.
func rounds(t *testing.T) int {
	n := 100
	if v := os.Getenv("SQLFENCE_GROUP_ROUNDS"); v != "" {
		var err error
		if n, err = strconv.Atoi(v); err != nil {
			t.Fatal(err)
		}
	}
	return n
}
