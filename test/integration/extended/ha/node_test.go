//go:build linux

package ha_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A node is a Patroni process and its PostgreSQL server.
type node struct {
	name       string
	dir        string
	port, rest string
	etcd       *relay
	owner      *syscall.Credential
	program    string
	patroni    *exec.Cmd // nil while Patroni doesn't run
	log        *os.File
}

// configure writes Patroni's configuration file. It disables fsync, because the tests kill servers and not the machine:
// the operating system keeps what a killed server has written.
func (n *node) configure(t *testing.T, c *cluster) {
	t.Helper()
	text := fmt.Sprintf(patroniConf, n.name, n.rest, n.etcd.port, c.synchronous, n.port, n.dir, c.bin, password, *api)
	file := filepath.Join(n.dir, "patroni.yml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	harness.Chown(t, file, n.owner)
}

// start runs Patroni, which starts PostgreSQL. If the test is killed, both end.
func (n *node) start(t *testing.T) {
	t.Helper()
	n.patroni = exec.Command(n.program, filepath.Join(n.dir, "patroni.yml"))
	n.patroni.Dir = n.dir
	n.patroni.Env = append(os.Environ(), "HOME="+n.dir, "PYTHONDONTWRITEBYTECODE=1")
	n.patroni.Stdout, n.patroni.Stderr = n.log, n.log
	n.patroni.SysProcAttr = &syscall.SysProcAttr{Credential: n.owner, Pdeathsig: syscall.SIGTERM}
	if err := n.patroni.Start(); err != nil {
		t.Fatal(err)
	}
}

func (n *node) data() string { return filepath.Join(n.dir, "data") }

// server returns the PIDs of PostgreSQL's processes, the postmaster first; nil if PostgreSQL isn't running.
func (n *node) server(t *testing.T) []int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(n.data(), "postmaster.pid"))
	if err != nil {
		return nil
	}
	first, _, _ := strings.Cut(string(text), "\n")
	postmaster, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil {
		return nil
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", postmaster, postmaster))
	if err != nil {
		return nil // the postmaster has ended
	}
	pids := []int{postmaster}
	for _, field := range strings.Fields(string(children)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// pause stops Patroni's process, and PostgreSQL's processes if all is set. resume resumes them.
func (n *node) pause(t *testing.T, all bool) (resume func()) {
	t.Helper()
	pids := []int{n.patroni.Process.Pid}
	signal(t, syscall.SIGSTOP, pids...)
	if all {
		postmaster := n.server(t)[:1]
		signal(t, syscall.SIGSTOP, postmaster...) // a stopped postmaster starts no further process
		server := n.server(t)
		signal(t, syscall.SIGSTOP, server...)
		pids = append(pids, server...)
	}
	slices.Reverse(pids)
	return func() { signal(t, syscall.SIGCONT, pids...) }
}

// kill kills all of the node's processes at once.
func (n *node) kill(t *testing.T) {
	t.Helper()
	if n.patroni == nil {
		return
	}
	_ = n.patroni.Process.Kill()
	_ = n.patroni.Wait()
	n.patroni = nil
	if postmaster := n.server(t); len(postmaster) > 0 {
		signal(t, syscall.SIGSTOP, postmaster[0]) // otherwise the postmaster would react to the death of its children
	}
	server := n.server(t)
	slices.Reverse(server)
	signal(t, syscall.SIGKILL, server...)
	harness.Eventually(t, "the end of the processes of "+n.name, func() bool {
		return !slices.ContainsFunc(server, isAlive)
	})
}

func isAlive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// signal sends a signal to processes, and ignores processes that have ended.
func signal(t *testing.T, s syscall.Signal, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		if err := syscall.Kill(pid, s); err != nil && err != syscall.ESRCH {
			t.Fatalf("signal %v to %d: %v", s, pid, err)
		}
	}
}

// A member is a node's entry in Patroni's list of the cluster.
type member struct {
	Name, Role, State string
	Timeline          int
}

// members asks the node's Patroni for the list of all nodes. It returns nil if Patroni doesn't respond.
func (n *node) members() []member {
	client := http.Client{Timeout: 3 * time.Second}
	answer, err := client.Get("http://127.0.0.1:" + n.rest + "/cluster")
	if err != nil {
		return nil
	}
	defer answer.Body.Close()
	var cluster struct{ Members []member }
	if json.NewDecoder(answer.Body).Decode(&cluster) != nil {
		return nil
	}
	return cluster.Members
}

// switchover asks Patroni to make another node the leader, and waits for Patroni's response.
func (n *node) switchover(t *testing.T) {
	t.Helper()
	body, _ := json.Marshal(map[string]string{"leader": n.name})
	answer, err := http.Post("http://127.0.0.1:"+n.rest+"/switchover", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var text bytes.Buffer
	_, _ = text.ReadFrom(answer.Body)
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("switchover from %s: %s: %s", n.name, answer.Status, text.String())
	}
}
