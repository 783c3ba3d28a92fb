package group_test

import (
	"syscall"
	"testing"

	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// of skips the test if the group isn't of the given kind.
func (c *cluster) of(t *testing.T, k kind) {
	t.Helper()
	if c.kind != k {
		t.Skipf("only %s has this fault", k)
	}
}

// isolate disconnects a Galera node from the others, and waits until the node has noticed. heal reconnects the node.
// Group Replication has no such setting.
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

// pause stops a node's process until the other nodes have expelled the node, and then resumes it. The resumed node
// learns of its expulsion later. rejoined waits until the node is a member again.
func (c *cluster) pause(t *testing.T, node int) (rejoined func()) {
	t.Helper()
	pid := harness.NodeProcess(t, node)
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

// desert stops the two other nodes until the remaining node has left the group, and then resumes them. rejoined waits
// until all three are one group again.
func (c *cluster) desert(t *testing.T, node int) (rejoined func()) {
	t.Helper()
	var others []int
	for i := range c.dsn {
		if i != node {
			pid := harness.NodeProcess(t, i)
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

// kill kills a node's process. revive starts the node again.
func (c *cluster) kill(t *testing.T, node int) (revive func()) {
	t.Helper()
	pid := harness.NodeProcess(t, node)
	revived := false
	revive = func() {
		if revived {
			return
		}
		revived = true
		harness.StartNode(t, node)
	}
	t.Cleanup(revive)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if c.kind == replication { // the node can rejoin only after the others have expelled it
		c.await(t, (node+1)%3, members, "2")
	}
	return revive
}
