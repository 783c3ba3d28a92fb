// Package galera_test has the tests of what holds, and of what is refused, where three nodes of
// a Galera cluster write to one database.
package galera_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/integration/harness"
)

// A cluster is a database of the test's own on three nodes.
type cluster struct {
	dsn   [3]string
	plain [3]*sql.DB // reads what was committed on any node before
}

const schema = `CREATE TABLE books (id bigint PRIMARY KEY, price bigint NOT NULL DEFAULT 0, fence_token bigint NOT NULL DEFAULT 0, serial bigint NOT NULL DEFAULT 1);
CREATE TABLE fencing_tokens (name varbinary(512) NOT NULL PRIMARY KEY, token bigint NOT NULL);
INSERT INTO books (id) VALUES (1), (2), (3)`

// start returns a cluster with [schema].
func start(t *testing.T) *cluster {
	t.Helper()
	dsns := strings.Fields(os.Getenv("SQLFENCE_GALERA_DSN"))
	if len(dsns) == 0 {
		const hint = "SQLFENCE_GALERA_DSN is not set; run scripts/with-galera go test ./galera"
		if os.Getenv("SQLFENCE_REQUIRE_GALERA") == "1" {
			t.Fatal(hint)
		}
		t.Skip(hint)
	}
	if len(dsns) != 3 {
		t.Fatalf("SQLFENCE_GALERA_DSN has %d nodes, want 3", len(dsns))
	}
	name := "sqlfence_" + strings.ToLower(rand.Text())
	c := &cluster{}
	for i, dsn := range dsns {
		c.dsn[i] = harness.MySQLWith(t, dsn, func(c *mysql.Config) { c.DBName = name })
		admin := harness.MySQLWith(t, dsn, func(c *mysql.Config) { c.Params = map[string]string{"wsrep_sync_wait": "15"} })
		c.plain[i] = open(t, admin)
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
		c.plain[i] = open(t, harness.MySQLWith(t, c.dsn[i], func(c *mysql.Config) {
			c.Params = map[string]string{"wsrep_sync_wait": "15"}
		}))
	}
	for s := range strings.SplitSeq(schema, ";") {
		run(t, c.plain[0], s)
	}
	for i := range dsns {
		c.price(t, i, 1)
	}
	return c
}

// price returns what a row has on a node, behind everything committed before.
func (c *cluster) price(t *testing.T, node, id int) (price int64) {
	t.Helper()
	if err := c.plain[node].QueryRow("SELECT price FROM books WHERE id = ?", id).Scan(&price); err != nil {
		t.Fatal(err)
	}
	return price
}

// fence opens a node with the table registered.
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

// rounds is how often a race is run; SQLFENCE_GALERA_ROUNDS sets another number.
func rounds(t *testing.T) int {
	n := 100
	if v := os.Getenv("SQLFENCE_GALERA_ROUNDS"); v != "" {
		var err error
		if n, err = strconv.Atoi(v); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// isolate cuts a node off, and waits until it knows that it is. heal is the way back.
func (c *cluster) isolate(t *testing.T, node int) (heal func()) {
	t.Helper()
	admin := open(t, c.dsn[node])
	set := func(value string) { run(t, admin, "SET GLOBAL wsrep_provider_options = 'gmcast.isolate="+value+"'") }
	set("1")
	c.await(t, node, "wsrep_ready", "OFF")
	healed := false
	heal = func() {
		if !healed {
			healed = true
			set("0")
			for i := range c.dsn {
				c.await(t, i, "wsrep_cluster_size", "3")
				c.await(t, i, "wsrep_ready", "ON")
			}
		}
	}
	t.Cleanup(heal)
	return heal
}

// patience is how long a node may take to learn of the others, each of which may be silent for half a minute.
const patience = 5 * time.Minute

// await waits until a node says this of itself.
func (c *cluster) await(t *testing.T, node int, status, want string) {
	t.Helper()
	admin := open(t, c.dsn[node])
	var name, value string
	for limit := time.Now().Add(patience); time.Now().Before(limit); time.Sleep(100 * time.Millisecond) {
		err := admin.QueryRow("SHOW GLOBAL STATUS LIKE '"+status+"'").Scan(&name, &value)
		if err == nil && value == want {
			return
		}
	}
	t.Fatalf("node %d: %s is %q, want %q", node+1, status, value, want)
}

// kill kills a node as a crash does. revive starts it again.
func (c *cluster) kill(t *testing.T, node int) (revive func()) {
	t.Helper()
	dir := os.Getenv("SQLFENCE_GALERA_DIR")
	if dir == "" {
		t.Skip("SQLFENCE_GALERA_DIR is not set: the nodes aren't this test's to kill")
	}
	text, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("n%d", node+1), "pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	revived := false
	revive = func() {
		if revived {
			return
		}
		revived = true
		if out, err := exec.Command(filepath.Join(dir, "start"), strconv.Itoa(node+1)).CombinedOutput(); err != nil {
			t.Errorf("starting node %d: %v\n%s", node+1, err, out)
		}
	}
	t.Cleanup(revive)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	return revive
}
