package dqlite_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	dqlite "github.com/canonical/go-dqlite/v3"
	"github.com/canonical/go-dqlite/v3/client"
)

// Environment variables of a node's process, which runs this test program again.
const (
	isNode    = "SQLFENCE_DQLITE_NODE" // the node's id
	ofAddress = "SQLFENCE_DQLITE_ADDRESS"
	ofFolder  = "SQLFENCE_DQLITE_FOLDER"
	ofNetwork = "SQLFENCE_DQLITE_NETWORK" // the address of the test's network, which forwards connections between nodes
)

// runNode runs a node until its standard input is closed.
func runNode() {
	must := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, "node:", err)
			os.Exit(1)
		}
	}
	id, err := strconv.ParseUint(os.Getenv(isNode), 10, 64)
	must(err)
	address := os.Getenv(ofAddress)
	n, err := dqlite.New(id, address, os.Getenv(ofFolder), dqlite.WithBindAddress(address),
		dqlite.WithBusyTimeout(120_000), dqlite.WithDialFunc(func(ctx context.Context, to string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", os.Getenv(ofNetwork))
			if err == nil {
				_, err = fmt.Fprintf(conn, "%s %s\n", address, to)
			}
			return conn, err
		}))
	must(err)
	must(n.Start())
	fmt.Println("started")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// A node is a process with a replica of each database.
type node struct {
	id      uint64
	address string
	folder  string
	process *exec.Cmd // nil while the node is down
	input   io.Closer
	ended   chan struct{}
}

// A cluster is several nodes on the loopback interface. The nodes connect to each other through the test's network.
type cluster struct {
	nodes   []*node
	network *network
	folder  string
}

func startCluster(t testing.TB, size int) *cluster {
	t.Helper()
	folder, err := os.MkdirTemp("", "sqlfence-dqlite")
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{network: newNetwork(t), folder: folder}
	for i := range size {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		n := &node{id: uint64(i + 1), address: l.Addr().String(), folder: filepath.Join(folder, strconv.Itoa(i+1))}
		_ = l.Close()
		if err := os.Mkdir(n.folder, 0o700); err != nil {
			t.Fatal(err)
		}
		c.nodes = append(c.nodes, n)
		c.start(t, n)
		if i > 0 {
			c.asLeader(t, func(ctx context.Context, l *client.Client) error {
				return l.Add(ctx, client.NodeInfo{ID: n.id, Address: n.address, Role: client.Voter})
			})
		}
	}
	return c
}

// ownCluster starts a cluster that the test may break.
func ownCluster(t testing.TB) *cluster {
	t.Helper()
	c := startCluster(t, 3)
	t.Cleanup(c.close)
	return c
}

func (c *cluster) close() {
	for _, n := range c.nodes {
		n.kill()
	}
	_ = c.network.listener.Close()
	_ = os.RemoveAll(c.folder)
}

func (c *cluster) infos() (all []client.NodeInfo) {
	for _, n := range c.nodes {
		all = append(all, client.NodeInfo{ID: n.id, Address: n.address, Role: client.Voter})
	}
	return all
}

// start starts a node, or restarts a node that was killed.
func (c *cluster) start(t testing.TB, n *node) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), isNode+"="+strconv.FormatUint(n.id, 10), ofAddress+"="+n.address,
		ofFolder+"="+n.folder, ofNetwork+"="+c.network.listener.Addr().String())
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	n.process, n.input, n.ended = cmd, input, make(chan struct{})
	if line, err := bufio.NewReader(output).ReadString('\n'); line != "started\n" {
		t.Fatalf("node %d: %q, %v", n.id, line, err)
	}
	go func(ended chan struct{}) {
		_ = cmd.Wait()
		close(ended)
	}(n.ended)
}

// revive restarts nodes whose process has ended.
func (c *cluster) revive(t testing.TB) {
	t.Helper()
	for _, n := range c.nodes {
		select {
		case <-n.ended:
			c.start(t, n)
		default:
		}
	}
}

func (n *node) kill() {
	if n.process == nil {
		return
	}
	_ = n.process.Process.Kill()
	<-n.ended
	n.process = nil
}

func (n *node) pause()                      { _ = n.process.Process.Signal(syscall.SIGSTOP) }
func (n *node) carryOn()                    { _ = n.process.Process.Signal(syscall.SIGCONT) }
func (n *node) up() bool                    { return n.process != nil }
func quiet(client.LogLevel, string, ...any) {}

// leader returns the node that most of the responding nodes name as the leader, or nil.
func (c *cluster) leader(ctx context.Context) *node {
	votes := map[uint64]int{}
	for _, n := range c.nodes {
		if !n.up() {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		if l, err := client.New(ctx, n.address); err == nil {
			if info, err := l.Leader(ctx); err == nil && info != nil {
				votes[info.ID]++
			}
			_ = l.Close()
		}
		cancel()
	}
	for _, n := range c.nodes {
		if votes[n.id] > len(c.nodes)/2 {
			return n
		}
	}
	return nil
}

// awaitLeader waits for a leader other than the given node, and returns the leader.
func (c *cluster) awaitLeader(t testing.TB, other *node) *node {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if l := c.leader(t.Context()); l != nil && l != other {
			return l
		}
	}
	t.Fatal("there is no leader")
	return nil
}

// asLeader calls do with a client of the leader.
func (c *cluster) asLeader(t testing.TB, do func(ctx context.Context, l *client.Client) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	store := client.NewInmemNodeStore()
	if err := store.Set(ctx, c.infos()); err != nil {
		t.Fatal(err)
	}
	l, err := client.FindLeader(ctx, store, client.WithLogFunc(quiet))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := do(ctx, l); err != nil {
		t.Fatal(err)
	}
}

// handOver makes another node the leader.
func (c *cluster) handOver(t testing.TB) {
	t.Helper()
	old := c.awaitLeader(t, nil)
	c.asLeader(t, func(ctx context.Context, l *client.Client) error {
		return l.Transfer(ctx, c.nodes[old.id%uint64(len(c.nodes))].id)
	})
	c.awaitLeader(t, old)
}

// A network forwards the connections between nodes. The network holds back all messages from and to a node that is cut
// off.
type network struct {
	listener net.Listener
	mu       sync.Mutex
	healed   *sync.Cond
	cut      map[string]bool // by address
}

func newNetwork(t testing.TB) *network {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &network{listener: l, cut: map[string]bool{}}
	n.healed = sync.NewCond(&n.mu)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go n.forward(conn)
		}
	}()
	return n
}

func (n *network) forward(conn net.Conn) {
	defer conn.Close()
	from := bufio.NewReader(conn)
	line, err := from.ReadString('\n')
	by, to, ok := strings.Cut(strings.TrimSpace(line), " ")
	if err != nil || !ok {
		return
	}
	n.wait(by, to)
	target, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer target.Close()
	go func() {
		n.copy(conn, target, by, to)
		_ = conn.Close()
	}()
	n.copy(target, from, by, to)
}

func (n *network) copy(to io.Writer, from io.Reader, a, b string) {
	buf := make([]byte, 1<<16)
	for {
		size, err := from.Read(buf)
		n.wait(a, b)
		if _, failed := to.Write(buf[:size]); failed != nil || err != nil {
			return
		}
	}
}

// wait waits until neither node is cut off.
func (n *network) wait(a, b string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for n.cut[a] || n.cut[b] {
		n.healed.Wait()
	}
}

// set cuts a node off, or reconnects it.
func (n *network) set(of *node, cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut[of.address] = cut
	n.healed.Broadcast()
}
