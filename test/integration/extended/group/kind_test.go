package group_test

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A kind of group. The value is the kind's name in sqlfence's error texts.
type kind string

const (
	galera      kind = "Galera"
	replication kind = "Group Replication"
)

func kindOf(t *testing.T, dsn string) kind {
	t.Helper()
	var version string
	if err := open(t, dsn).QueryRow("SELECT version()").Scan(&version); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(version, "MariaDB") {
		return galera
	}
	return replication
}

// reading opens a node for reads that see everything committed on any node before.
func (k kind) reading(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	return open(t, harness.MySQLWith(t, dsn, func(c *mysql.Config) {
		c.Params = map[kind]map[string]string{
			galera:      {"wsrep_sync_wait": "15"},
			replication: {"group_replication_consistency": "'BEFORE'"},
		}[k]
	}))
}

// members is the query for a node's count of group members, and membersOnline for its count of members that are online.
const (
	members       = "SELECT '', COUNT(*) FROM performance_schema.replication_group_members"
	membersOnline = members + " WHERE member_state = 'ONLINE'"
)

// awaitAll waits until all nodes are one group.
func (c *cluster) awaitAll(t *testing.T) {
	t.Helper()
	for node := range c.dsn {
		if c.kind == replication {
			c.await(t, node, membersOnline, "3")
			continue
		}
		c.await(t, node, "SHOW GLOBAL STATUS LIKE 'wsrep_cluster_size'", "3")
		c.await(t, node, "SHOW GLOBAL STATUS LIKE 'wsrep_ready'", "ON")
	}
}

// patience is how long a node may take to detect the other nodes. Each of them may be silent for half a minute.
const patience = 5 * time.Minute

// await waits until a node returns want for the query.
func (c *cluster) await(t *testing.T, node int, question, want string) {
	t.Helper()
	admin := open(t, c.dsn[node])
	var name, value string
	for limit := time.Now().Add(patience); time.Now().Before(limit); time.Sleep(100 * time.Millisecond) {
		if err := admin.QueryRow(question).Scan(&name, &value); err == nil && value == want {
			return
		}
	}
	t.Fatalf("node %d: %s is %q, want %q", node+1, question, value, want)
}
