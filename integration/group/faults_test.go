package group_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// of skips the test where the group is of another kind.
func (c *cluster) of(t *testing.T, k kind) {
	t.Helper()
	if c.kind != k {
		t.Skipf("only %s has this fault", k)
	}
}

// isolate cuts a node off, and waits until it knows that it is. heal is the way back. Group Replication has no
// switch for that.
func (c *cluster) isolate(t *testing.T, node int) (heal func()) {
	t.Helper()
	c.of(t, galera)
	admin := open(t, c.dsn[node])
	set := func(value string) { run(t, admin, "SET GLOBAL wsrep_provider_options = 'gmcast.isolate="+value+"'") }
	set("1")
	c.await(t, node, "SHOW GLOBAL STATUS LIKE 'wsrep_ready'", "OFF")
	healed := false
	heal = func() {
		if !healed {
			healed = true
			set("0")
			c.awaitAll(t)
		}
	}
	t.Cleanup(heal)
	return heal
}

// pause stops a node's process until the others have expelled it, and lets it go on: the node learns of that by and by.
// rejoined waits until it is one of them again.
func (c *cluster) pause(t *testing.T, node int) (rejoined func()) {
	t.Helper()
	_, pid := process(t, node)
	resume := func() {
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			t.Error(err)
		}
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(resume)
	c.await(t, (node+1)%3, members, "2")
	resume()
	return func() { c.awaitAll(t) }
}

// desert stops both other nodes until the one that is left gives up the group, and lets them go on. rejoined waits
// until they are one group again.
func (c *cluster) desert(t *testing.T, node int) (rejoined func()) {
	t.Helper()
	var others []int
	for i := range c.dsn {
		if i != node {
			_, pid := process(t, i)
			others = append(others, pid)
		}
	}
	each := func(sig syscall.Signal) {
		for _, pid := range others {
			if err := syscall.Kill(pid, sig); err != nil {
				t.Error(err)
			}
		}
	}
	each(syscall.SIGSTOP)
	t.Cleanup(func() { each(syscall.SIGCONT) })
	c.await(t, node, "SELECT '', member_state FROM performance_schema.replication_group_members WHERE member_id = @@server_uuid", "ERROR")
	each(syscall.SIGCONT)
	return func() { c.awaitAll(t) }
}

// process returns the folder of the nodes and the number of a node's process.
func process(t *testing.T, node int) (dir string, pid int) {
	t.Helper()
	dir = os.Getenv("SQLFENCE_GROUP_DIR")
	if dir == "" {
		t.Skip("SQLFENCE_GROUP_DIR is not set: the nodes aren't this test's to stop")
	}
	text, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("n%d", node+1), "pid"))
	if err != nil {
		t.Fatal(err)
	}
	if pid, err = strconv.Atoi(strings.TrimSpace(string(text))); err != nil {
		t.Fatal(err)
	}
	return dir, pid
}

// kill kills a node as a crash does. revive starts it again.
func (c *cluster) kill(t *testing.T, node int) (revive func()) {
	t.Helper()
	dir, pid := process(t, node)
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
	if c.kind == replication { // it can't join again before the others have expelled it
		c.await(t, (node+1)%3, members, "2")
	}
	return revive
}
