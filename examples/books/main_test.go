package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/sqlfence/sqlfence/examples/internal/terminated"
)

func TestMain(m *testing.M) {
	if os.Getenv("SQLFENCE_EXAMPLE_MAIN") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// The program prints what it does, passes flags and the exit status on, and leaves no files.
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

// After an interrupt the program interrupts its child, and leaves no files.
func TestTerminated(t *testing.T) {
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		t.Run(fmt.Sprint(signal), func(t *testing.T) {
			status, _ := terminated.Run(t, signal, func(line string) bool { return strings.HasPrefix(line, "1000 clients change") })
			if status != 130 {
				t.Errorf("status %d, want 130", status)
			}
		})
	}
}
