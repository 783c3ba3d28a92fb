package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

func TestMain(m *testing.M) {
	if os.Getenv("SQLFENCE_EXAMPLE_MAIN") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// The program announces itself, passes flags and status on, and leaves nothing behind.
func TestBuildsAndRuns(t *testing.T) {
	for _, test := range []struct {
		name   string
		flags  []string
		status int
		want   string
	}{
		{"runs", []string{"-clients", "20"}, 0, "\nOK: with sqlfence no stale write landed"},
		{"fails", []string{"-clients", "0"}, 2, "Usage of"},
	} {
		t.Run(test.name, func(t *testing.T) {
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			folder := t.TempDir()
			var out bytes.Buffer
			cmd := exec.CommandContext(t.Context(), self, test.flags...)
			cmd.Env = append(os.Environ(), "SQLFENCE_EXAMPLE_MAIN=1", "TMPDIR="+folder)
			cmd.Stdout, cmd.Stderr = &out, &out
			_ = cmd.Run()
			if got := cmd.ProcessState.ExitCode(); got != test.status {
				t.Errorf("status %d, want %d", got, test.status)
			}
			if text := out.String(); !strings.HasPrefix(text, "Building the example") || !strings.Contains(text, test.want) {
				t.Errorf("it says\n%s\nwant %q", text, test.want)
			}
			if entries, err := os.ReadDir(folder); err != nil || len(entries) != 0 {
				t.Errorf("it left %v, %v", entries, err)
			}
		})
	}
}

// Interrupted in the middle, it passes that on, and leaves nothing behind.
func TestTerminated(t *testing.T) {
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		t.Run(fmt.Sprint(signal), func(t *testing.T) {
			for try := 1; ; try++ {
				status, ended := terminate(t, signal)
				if ended && try < 10 {
					t.Log("it came to its end first; again")
					continue
				}
				if status != 130 {
					t.Errorf("status %d, want 130", status)
				}
				return
			}
		})
	}
}

// terminate runs the program, and sends it a signal in the middle. ended tells that it has come to its end, as it does
// where this process stands still before that.
func terminate(t *testing.T, signal os.Signal) (status int, ended bool) {
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
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "1000 clients change") {
	}
	_ = cmd.Process.Signal(signal) // it may have ended
	for lines.Scan() {
		ended = ended || strings.HasPrefix(lines.Text(), "OK")
	}
	_ = cmd.Wait()
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 0 {
		t.Errorf("it left %v, %v", entries, err)
	}
	return cmd.ProcessState.ExitCode(), ended
}
