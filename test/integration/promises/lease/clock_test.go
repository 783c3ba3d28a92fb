package lease_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

const (
	stoppedEnv    = "SQLFENCE_LEASE_STOPPED" // name of the Base and DSN
	stoppedTTL    = 300 * time.Millisecond
	stoppedRounds = 5
)

// A process that was stopped past the end of its lease detects the loss on resuming, before any timer has run, because
// another process may hold the lease.
func TestLeaseStoppedProcess(t *testing.T) {
	harness.EachStore(t, func(t *testing.T, b harness.Base) {
		dsn := b.DSN(t)
		leases := harness.NewLeases(t, b.Raw(t, dsn))
		cmd := exec.Command(os.Args[0], "-test.run=^TestLeaseStoppedWorker$", "-test.v=false")
		cmd.Env = append(os.Environ(), stoppedEnv+"="+b.Name+" "+dsn, "GOMAXPROCS=1")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stderr = cmd.Stdout
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer cmd.Wait()
		defer cmd.Process.Kill()
		signal := func(s syscall.Signal) {
			if err := cmd.Process.Signal(s); err != nil {
				t.Fatal(err)
			}
		}
		lost := 0
		for lines := bufio.NewScanner(out); lines.Scan(); {
			switch line := lines.Text(); {
			case strings.HasPrefix(line, "holds "):
				signal(syscall.SIGSTOP)
				passed(t, leases, strings.TrimPrefix(line, "holds "))
				signal(syscall.SIGCONT)
			case line == "lost":
				lost++
			case line != "PASS":
				t.Errorf("the worker says: %s", line)
			}
		}
		if lost != stoppedRounds {
			t.Errorf("%d leases were lost, want %d", lost, stoppedRounds)
		}
	})
}

// TestLeaseStoppedWorker runs in the other process: it holds a lease and repeatedly checks whether it still does.
func TestLeaseStoppedWorker(t *testing.T) {
	name, dsn, ok := strings.Cut(os.Getenv(stoppedEnv), " ")
	if !ok {
		t.Skip("this is the other process of TestLeaseStoppedProcess")
	}
	for _, b := range harness.Stores {
		if b.Name != name {
			continue
		}
		leases := harness.NewLeases(t, b.Raw(t, dsn), lease.WithLogger(slog.New(slog.DiscardHandler)))
		resolution := time.Duration(0)
		if b.Dialect == sqlfence.SQLite { // SQLite's clock is late by up to 1 ms
			resolution = time.Millisecond
		}
		for round := range stoppedRounds {
			key := fmt.Sprint("stopped/", round)
			l := harness.MustAcquire(t, leases, key, lease.TTL(stoppedTTL))
			fmt.Println("holds", key)
			for ends := l.ExpiresAt(); ; {
				// The server's clock is this machine's.
				ended := time.Now().After(ends.Add(resolution))
				var err error
				if round%2 == 0 {
					err = l.Err()
				} else {
					err = l.Context().Err()
				}
				if err == nil && ended {
					fmt.Println("held after its end")
				}
				if err != nil || ended {
					break
				}
			}
			<-l.Done()
			if !errors.Is(context.Cause(l.Context()), lease.ErrLeaseLost) {
				fmt.Println("it ended with", context.Cause(l.Context()))
			}
			fmt.Println("lost")
		}
	}
}

// With a margin, a lease ends for its holder before another caller can take the lease.
func TestLeaseMargin(t *testing.T) {
	harness.EachStore(t, func(t *testing.T, b harness.Base) {
		leases := harness.NewLeases(t, b.Raw(t, b.DSN(t)))
		l := harness.MustAcquire(t, leases, "jobs", lease.TTL(time.Hour), lease.Margin(time.Hour-50*time.Millisecond))
		<-l.Done()
		if !errors.Is(l.Err(), lease.ErrLeaseLost) || !errors.Is(context.Cause(l.Context()), lease.ErrLeaseLost) {
			t.Errorf("in its margin: %v, %v", l.Err(), context.Cause(l.Context()))
		}
		if _, ok, err := leases.TryAcquire(t.Context(), "jobs"); ok || err != nil {
			t.Errorf("another in the margin: %v, %v", ok, err)
		}
		if info, ok, err := leases.Lookup(t.Context(), "jobs"); !ok || err != nil || !info.ExpiresAt.Equal(l.ExpiresAt()) {
			t.Errorf("the database says %v, %v, %v", info, ok, err)
		}
	})
}
