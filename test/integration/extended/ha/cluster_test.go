//go:build linux

package ha_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/sqlfence/sqlfence/internal/need"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A cluster is an etcd and three nodes.
type cluster struct {
	synchronous bool
	bin         string // the folder of PostgreSQL's programs
	proxy       string // the port of the haproxy that leads to the leader; empty without
	nodes       []*node
}

// patience is how long a node may take to join the others again: it may have to copy another one's data.
const patience = 5 * time.Minute

// start starts a cluster, and waits until all nodes are there.
func start(t *testing.T, synchronous bool) *cluster {
	t.Helper()
	c := &cluster{synchronous: synchronous, bin: programs(t)}
	patroni, etcd := need.Program(t, "patroni"), need.Program(t, "etcd")
	dir, err := os.MkdirTemp("", "sqlfence") // t.TempDir lies in a folder that others can't enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	owner := serverUser(t)
	harness.Chown(t, dir, owner)
	store := startEtcd(t, etcd, dir)
	for i := range 3 {
		n := &node{name: fmt.Sprint("n", i+1), program: patroni, owner: owner, etcd: newRelay(t, store)}
		n.dir = filepath.Join(dir, n.name)
		if err := os.Mkdir(n.dir, 0o700); err != nil {
			t.Fatal(err)
		}
		harness.Chown(t, n.dir, owner)
		if n.log, err = os.Create(filepath.Join(dir, n.name+".log")); err != nil {
			t.Fatal(err)
		}
		_, n.port = harness.FreeAddress(t)
		_, n.rest = harness.FreeAddress(t)
		n.configure(t, c)
		c.nodes = append(c.nodes, n)
		t.Cleanup(func() { c.end(t, n) })
		n.start(t)
		if i == 0 { // the others copy it
			c.await(t, "the first leader", func() bool { return c.leader() != nil })
		}
	}
	c.settle(t)
	c.proxy = startProxy(t, c, dir)
	return c
}

// end ends a node, and shows what it has said if the test has failed.
func (c *cluster) end(t *testing.T, n *node) {
	n.kill(t)
	_ = n.log.Close()
	if !t.Failed() {
		return
	}
	text, _ := os.ReadFile(n.log.Name())
	lines := strings.Split(string(text), "\n")
	t.Logf("%s:\n%s", n.name, strings.Join(lines[max(0, len(lines)-150):], "\n"))
}

// programs returns the folder that has all of PostgreSQL's programs. On PATH some may be links to it.
func programs(t *testing.T) string {
	t.Helper()
	path, err := filepath.EvalSymlinks(filepath.Join(harness.ServerPrograms(t), "initdb"))
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(path)
}

// serverUser returns the user whom servers run as that refuse to run as root; nil for the one who runs the test.
func serverUser(t *testing.T) *syscall.Credential {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		t.Fatal(err)
	}
	uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
	gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
	if uidErr != nil || gidErr != nil {
		t.Fatal(uidErr, gidErr)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// startEtcd returns the address of an etcd.
func startEtcd(t *testing.T, etcd, dir string) string {
	t.Helper()
	address, _ := harness.FreeAddress(t)
	peers, _ := harness.FreeAddress(t)
	harness.Run(t, address, etcd, "--data-dir", filepath.Join(dir, "etcd"), "--log-level", "error", "--enable-v2",
		"--listen-client-urls", "http://"+address, "--advertise-client-urls", "http://"+address,
		"--listen-peer-urls", "http://"+peers, "--initial-advertise-peer-urls", "http://"+peers,
		"--initial-cluster", "default=http://"+peers)
	return address
}

// dsn leads to the first server that accepts writes, from the nth node on.
func (c *cluster) dsn(n int) string {
	hosts, ports := make([]string, len(c.nodes)), make([]string, len(c.nodes))
	for i := range c.nodes {
		hosts[i], ports[i] = "127.0.0.1", c.nodes[(n+i)%len(c.nodes)].port
	}
	return "user=sqlfence dbname=postgres sslmode=disable connect_timeout=2 target_session_attrs=read-write password=" +
		password + " host=" + strings.Join(hosts, ",") + " port=" + strings.Join(ports, ",")
}

// nodeDSN leads to the server on a port, whatever it is.
func nodeDSN(port string) string {
	return "postgres://sqlfence:" + password + "@127.0.0.1:" + port + "/postgres?sslmode=disable&connect_timeout=2"
}

// ask returns a node's answer to a query; the empty text if there is none.
func (n *node) ask(query string) (answer string) {
	db, err := sql.Open("pgx", nodeDSN(n.port))
	if err != nil {
		return ""
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = db.QueryRowContext(ctx, query).Scan(&answer)
	return answer
}

// leader returns the node that the others take for the leader, and that accepts writes; nil if there is none.
func (c *cluster) leader() *node {
	for _, n := range c.nodes {
		for _, m := range n.members() {
			if m.Role != "leader" {
				continue
			}
			for _, l := range c.nodes {
				if l.name == m.Name && l.patroni != nil && l.ask("SELECT pg_is_in_recovery()::text") == "false" {
					return l
				}
			}
		}
	}
	return nil
}

// timeline returns the leader's; 0 if it isn't known.
func (n *node) timeline() int64 {
	name := n.ask("SELECT pg_walfile_name(pg_current_wal_lsn())")
	if len(name) < 8 {
		return 0
	}
	timeline, _ := strconv.ParseInt(name[:8], 16, 64)
	return timeline
}

// settle waits until the cluster can stand the next failure: both standbys follow the leader, and one of them is
// synchronous, also by what Patroni has written down, where replication is.
func (c *cluster) settle(t *testing.T) *node {
	t.Helper()
	var leader *node
	c.await(t, "both standbys follow", func() bool {
		leader = c.leader()
		if leader == nil || leader.ask("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'") != "2" {
			return false
		}
		replicas, synchronous := 0, 0
		for _, m := range leader.members() {
			switch {
			case m.State != "running":
			case m.Role == "replica":
				replicas++
			case m.Role == "sync_standby":
				synchronous++
			}
		}
		if !c.synchronous {
			return replicas == 2
		}
		return replicas == 1 && synchronous == 1 &&
			leader.ask("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") == "1"
	})
	return leader
}

func (c *cluster) await(t *testing.T, what string, seen func() bool) {
	t.Helper()
	for limit := time.Now().Add(patience); !seen(); time.Sleep(200 * time.Millisecond) {
		for _, n := range c.nodes {
			if n.patroni != nil && !isAlive(n.patroni.Process.Pid) {
				t.Fatalf("the Patroni of %s has ended; awaited: %s", n.name, what)
			}
		}
		if time.Now().After(limit) {
			t.Fatalf("not seen in %v: %s", patience, what)
		}
	}
}
