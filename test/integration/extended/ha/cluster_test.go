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

	"github.com/sqlfence/sqlfence/internal/test/need"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A cluster is an etcd and three PostgreSQL nodes that Patroni manages.
type cluster struct {
	synchronous bool
	bin         string // the folder of PostgreSQL's programs
	proxy       string // the port of the haproxy that connects to the leader; empty if there is no haproxy
	nodes       []*node
}

// patience is how long a node may take to rejoin the cluster. It may have to copy the leader's data.
const patience = 5 * time.Minute

// start starts a cluster, and waits until all nodes are there.
func start(t *testing.T, synchronous bool) *cluster {
	t.Helper()
	c := &cluster{synchronous: synchronous, bin: programs(t)}
	patroni, etcd := need.Program(t, "patroni"), need.Program(t, "etcd")
	dir, err := os.MkdirTemp("", "sqlfence") // the server's user can't enter the folder of t.TempDir
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
		if i == 0 { // the other nodes copy its data
			c.await(t, "the first leader", func() bool { return c.leader() != nil })
		}
	}
	c.settle(t)
	c.proxy = startProxy(t, c, dir)
	return c
}

// end kills a node. If the test has failed, it logs the node's last output.
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

// programs returns the folder with all of PostgreSQL's programs. In PATH some of them may be symbolic links.
func programs(t *testing.T) string {
	t.Helper()
	path, err := filepath.EvalSymlinks(filepath.Join(harness.ServerPrograms(t), "initdb"))
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(path)
}

// serverUser returns the user for the servers, because PostgreSQL refuses to run as root. It returns nil unless the
// test runs as root.
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

// startEtcd starts etcd and returns its address.
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

// dsn returns a DSN that connects to the first server that accepts writes, starting with the nth node.
func (c *cluster) dsn(n int) string {
	hosts, ports := make([]string, len(c.nodes)), make([]string, len(c.nodes))
	for i := range c.nodes {
		hosts[i], ports[i] = "127.0.0.1", c.nodes[(n+i)%len(c.nodes)].port
	}
	return "user=sqlfence dbname=postgres sslmode=disable connect_timeout=2 target_session_attrs=read-write password=" +
		password + " host=" + strings.Join(hosts, ",") + " port=" + strings.Join(ports, ",")
}

// nodeDSN returns a DSN for the server on a port, whether the server is primary or standby.
func nodeDSN(port string) string {
	return "postgres://sqlfence:" + password + "@127.0.0.1:" + port + "/postgres?sslmode=disable&connect_timeout=2"
}

// ask returns a node's result of a query, or "" if the query fails.
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

// leader returns the node that Patroni's members name as the leader, if that node accepts writes; otherwise nil.
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

// timeline returns the timeline of a primary, or 0 if it isn't known.
func (n *node) timeline() int64 {
	name := n.ask("SELECT pg_walfile_name(pg_current_wal_lsn())")
	if len(name) < 8 {
		return 0
	}
	timeline, _ := strconv.ParseInt(name[:8], 16, 64)
	return timeline
}

// settle waits until the cluster is ready for the next failure: both standbys stream from the leader. In synchronous
// mode, PostgreSQL and Patroni must also both report a synchronous standby.
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
