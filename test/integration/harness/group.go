package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/internal/test/need"
)

// groupDir is the folder of the nodes that scripts/with-group has started.
func groupDir(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("SQLFENCE_GROUP_DIR")
	if dir == "" {
		need.Missing(t, "group", "SQLFENCE_GROUP_DIR is not set, so this test may not stop the nodes; run scripts/with-group")
	}
	return dir
}

// NodeProcess returns the number of the process of a group's node; the first node is 0. A test that may
// not stop the nodes is skipped or fails: see [need.Missing].
func NodeProcess(t testing.TB, node int) (pid int) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(groupDir(t), fmt.Sprintf("n%d", node+1), "pid"))
	if err == nil {
		pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
	}
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// StartNode starts a group's node again, after its process was killed, and waits until it is ready.
func StartNode(t testing.TB, node int) {
	t.Helper()
	if out, err := exec.Command(filepath.Join(groupDir(t), "start"), strconv.Itoa(node+1)).CombinedOutput(); err != nil {
		t.Errorf("starting node %d: %v\n%s", node+1, err, out)
	}
}
