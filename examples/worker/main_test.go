//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/sqlfence/sqlfence/examples/internal/servers"
	"github.com/sqlfence/sqlfence/examples/internal/terminated"
)

func TestMain(m *testing.M) {
	if isWorker() || os.Getenv("SQLFENCE_EXAMPLE_MAIN") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// runUndisturbed repeats the story until no standstill of the machine disturbs it, and returns the output.
func runUndisturbed(t *testing.T, dsn string, fenced bool) (string, error) {
	t.Helper()
	for range 20 {
		var out bytes.Buffer
		if err := run(t.Context(), &out, dsn, fenced); !errors.Is(err, errDisturbed) {
			return out.String(), err
		}
		t.Logf("disturbed:\n%s", &out)
	}
	t.Fatal("disturbed each time")
	return "", nil
}

func TestWorker(t *testing.T) {
	servers.Each(t, func(t *testing.T, dsn string) {
		out, err := runUndisturbed(t, dsn, true)
		if err != nil {
			t.Errorf("run: %v", err)
		}
		t.Logf("the timeline:\n%s", out)
		if !strings.HasPrefix(out, "Two workers, A and B, work off a queue of 5 jobs") {
			t.Error("the output doesn't begin with what will be seen")
		}
		at := 0
		for _, want := range []string{"leads with token 1", "is stopped", "leads with token 2", "finishes job 2", "is resumed",
			"wants to finish job 2: refused, token 1 is stale, the newest is 2", "has lost the lease", "OK: "} {
			i := strings.Index(out[at:], want)
			if i < 0 {
				t.Fatalf("the timeline lacks %q, or has it too early", want)
			}
			at += i
		}
		if n := strings.Count(out, "\n"); n > 40 {
			t.Errorf("the timeline has %d lines, at most 40 are readable", n)
		}
		for line := range strings.Lines(out) {
			if len(line) > 81 {
				t.Errorf("wider than a terminal of 80 columns: %s", line)
			}
		}
	})
}

// The negative control: without the fence the stale write lands.
func TestWorkerUnfenced(t *testing.T) {
	servers.Each(t, func(t *testing.T, dsn string) {
		if out, err := runUndisturbed(t, dsn, false); !errors.Is(err, errStaleLanded) {
			t.Errorf("run without the fence: %v, want %v; the timeline:\n%s", err, errStaleLanded, out)
		}
	})
}

// Each line is printed when its event happens. After a signal to end, the program removes its folder.
func TestTerminated(t *testing.T) {
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		t.Run(fmt.Sprint(signal), func(t *testing.T) {
			status, while := terminated.Run(t, signal, func(line string) bool { return strings.HasSuffix(line, "A  begins job 1") })
			if status != 1 {
				t.Errorf("the program ended with status %d, want 1", status)
			}
			if len(while) != 1 {
				t.Errorf("while it runs its folder has %v", while)
			}
		})
	}
}
