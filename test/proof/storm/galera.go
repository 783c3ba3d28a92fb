//go:build linux

package storm

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence/internal/test/need"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/test/proof/history"
)

// A group is a cluster's three nodes, which all write.
type group struct {
	t     *testing.T
	nodes []*sql.DB
}

// Galera is a database on three nodes of MariaDB's, and each process writes to one of them. A node is cut off from the
// others, or killed, while those go on.
func Galera(t *testing.T) *Target {
	t.Helper()
	servers := strings.Fields(need.Server(t, "GROUP", "../../scripts/with-group galera go test . -run TestStorm -databases galera"))
	harness.NodeProcess(t, 0) // they have to be the test's to stop
	g := &group{t: t}
	name, first := fmt.Sprint("proof_", time.Now().UnixNano()), open(t, "mysql", servers[0])
	if _, err := first.Exec("CREATE DATABASE " + name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = first.Exec("DROP DATABASE " + name) })
	for i, dsn := range servers {
		servers[i] = harness.MySQLWith(t, dsn, func(c *mysql.Config) { c.DBName = name })
		harness.Eventually(t, "the node has the database", func() bool {
			db, err := sql.Open("mysql", servers[i])
			known := err == nil && db.Ping() == nil
			_ = db.Close()
			return known
		})
		g.nodes = append(g.nodes, open(t, "mysql", dsn))
		g.hurry(i)
	}
	reading := harness.MySQLWith(t, servers[0], func(c *mysql.Config) { // what was committed on any node
		c.Params = map[string]string{"wsrep_sync_wait": "15"}
	})
	db := &Target{
		Database: "galera", TTL: 300 * time.Millisecond, Tables: history.For(false, false), Wire: NewWire(t, servers...),
		Admin: open(t, "mysql", reading), Nodes: g.nodes,
		Forms:    []string{"update prepared"},
		Levels:   []string{"read committed", "repeatable read"},
		sessions: "SELECT ID FROM information_schema.PROCESSLIST WHERE USER = 'sqlfence' AND ID <> CONNECTION_ID()",
		end:      "KILL %d",
		version:  "SELECT concat('MariaDB ', version())", before: ", three nodes of Galera's",
		empty:  []string{"TRUNCATE history"},
		faults: []Fault{{"node cut off", 15 * time.Second, func(_ *Storm, rng *rand.Rand) { g.cutOff(rng) }}},
	}
	db.crash = func() { g.crash(rand.IntN(len(g.nodes))) }
	db.DSN = db.Wire.DSN
	return db
}

// hurry makes a node detect a lost node within seconds, so that waiting sessions continue.
func (g *group) hurry(node int) {
	g.set(node, "evs.suspect_timeout=PT2S;evs.inactive_timeout=PT4S;evs.install_timeout=PT4S")
}

func (g *group) set(node int, option string) {
	if _, err := g.nodes[node].Exec("SET GLOBAL wsrep_provider_options = '" + option + "'"); err != nil {
		g.t.Errorf("node %d: %v", node+1, err)
	}
}

// cutOff keeps a node from the others until both sides know it, and for a while.
func (g *group) cutOff(rng *rand.Rand) {
	node := rng.IntN(len(g.nodes))
	g.set(node, "gmcast.isolate=1")
	g.await(node, "wsrep_ready", "OFF")
	g.await((node+1)%len(g.nodes), "wsrep_cluster_size", "2")
	time.Sleep(time.Duration(rng.Int64N(int64(time.Second))))
	g.set(node, "gmcast.isolate=0")
	g.whole()
}

// crash kills a node's process, and starts it again.
func (g *group) crash(node int) {
	if err := syscall.Kill(harness.NodeProcess(g.t, node), syscall.SIGKILL); err != nil {
		g.t.Fatal(err)
	}
	harness.StartNode(g.t, node)
	g.whole()
	g.hurry(node)
}

// whole waits until the nodes are one group.
func (g *group) whole() {
	for node := range g.nodes {
		g.await(node, "wsrep_cluster_size", strconv.Itoa(len(g.nodes)))
		g.await(node, "wsrep_ready", "ON")
	}
}

// await waits until a node reports the wanted status.
func (g *group) await(node int, status, want string) {
	g.t.Helper()
	harness.Eventually(g.t, fmt.Sprintf("node %d has %s %s", node+1, status, want), func() bool {
		var name, value string
		err := g.nodes[node].QueryRow("SHOW GLOBAL STATUS LIKE '"+status+"'").Scan(&name, &value)
		return err == nil && value == want
	})
}
