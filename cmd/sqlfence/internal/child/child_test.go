//go:build linux

package child

import (
	"bufio"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// On a terminal the command has no group of its own: what it has started is ended all the same, also what
// ignores SIGTERM, and what has lost its parent by that.
func TestEndWithoutGroup(t *testing.T) {
	for name, script := range map[string]string{
		"a child":              `sleep 600 & echo $!; wait`,
		"a grandchild":         `sh -c 'sleep 600 & echo $!; wait'; true`,
		"one that ignores it":  `sh -c 'trap "" TERM; echo $$; while :; do sleep 1; done'; true`,
		"a session of its own": `setsid sh -c 'echo $$; while :; do sleep 1; done'; true`,
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command("sh", "-c", script)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			c, err := Start(cmd, true)
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
			for _, lives := look(pid); lives; _, lives = look(pid) { // SIGKILL takes a moment
				if time.Now().After(limit) {
					t.Fatalf("process %d lives", pid)
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
}
