// Package terminated tests how an example behaves after a signal to end.
package terminated

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// tries is how often a program may end before the signal, for example because this process was paused.
const tries = 10

// Run runs this test's program as the example, by setting SQLFENCE_EXAMPLE_MAIN, and sends the signal when the example
// has written a line for which middle returns true. Run returns the exit status, and the entries of the example's
// temporary folder at the time of the signal. The test fails if the example leaves entries there.
func Run(t *testing.T, signal os.Signal, middle func(line string) bool) (status int, while []os.DirEntry) {
	t.Helper()
	for try := 1; ; try++ {
		status, while, ended := run(t, signal, middle)
		if !ended || try == tries {
			return status, while
		}
		t.Log("it came to its end first; again")
	}
}

func run(t *testing.T, signal os.Signal, middle func(line string) bool) (status int, while []os.DirEntry, ended bool) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), "SQLFENCE_EXAMPLE_MAIN=1", "TMPDIR="+folder)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && !middle(lines.Text()) {
	}
	while = entries(t, folder)
	_ = cmd.Process.Signal(signal) // it may have ended
	for lines.Scan() {
		ended = ended || strings.HasPrefix(lines.Text(), "OK")
	}
	_ = cmd.Wait()
	if left := entries(t, folder); len(left) != 0 {
		t.Errorf("it left %v", left)
	}
	return cmd.ProcessState.ExitCode(), while, ended
}

func entries(t *testing.T, folder string) []os.DirEntry {
	t.Helper()
	found, err := os.ReadDir(folder)
	if err != nil {
		t.Error(err)
	}
	return found
}
