//go:build linux

package child

import (
	"bufio"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// End ends a command with its descendants, in any process group or session, on a terminal or not. This includes
// processes that ignore SIGTERM, and orphans. Processes from before the command stay.
func TestEndAll(t *testing.T) {
	before := exec.Command("sleep", "600")
	if err := before.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = before.Process.Kill(); _ = before.Wait() }()
	for name, script := range map[string]string{
		"a child":              `sleep 600 & echo $!; wait`,
		"a grandchild":         `sh -c 'sleep 600 & echo $!; wait'; true`,
		"one that ignores it":  `sh -c 'trap "" TERM; echo $$; while :; do sleep 1; done'; true`,
		"a session of its own": `setsid sh -c 'echo $$; while :; do sleep 1; done'; true`,
		"a job of its own":     `set -m; sleep 600 & echo $!; wait`,
		"a daemon":             `(setsid sh -c 'trap "" TERM HUP; echo $$; while :; do sleep 1; done' &) & sleep 600`,
		"one that forks":       `setsid sh -c 'trap "" TERM; echo $$; while :; do sleep 0.01 & done' & wait`,
	} {
		for _, terminal := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, terminal %v", name, terminal), func(t *testing.T) {
				cmd := exec.Command("sh", "-c", script)
				out, err := cmd.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				c, err := Start(cmd, terminal)
				if err != nil {
					t.Fatal(err)
				}
				line, err := bufio.NewReader(out).ReadString('\n')
				if err != nil {
					t.Fatal(err)
				}
				pid, err := strconv.Atoi(strings.TrimSpace(line))
				if err != nil {
					t.Fatal(err)
				}
				c.End(500 * time.Millisecond)
				limit := time.Now().Add(2 * time.Minute)
				for lives(pid) { // SIGKILL takes a moment
					if time.Now().After(limit) {
						t.Fatalf("process %d lives", pid)
					}
					time.Sleep(time.Millisecond)
				}
				if left := descendants(c.others); len(left) > 0 {
					t.Errorf("left: %+v", left)
				}
				if !lives(before.Process.Pid) {
					t.Error("what this process had started before is gone")
				}
			})
		}
	}
}

func lives(pid int) bool {
	_, dead, ok := look(pid)
	return ok && !dead
}
