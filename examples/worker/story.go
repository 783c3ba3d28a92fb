//go:build unix

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sqlfence/sqlfence/examples/internal/scratch"
)

// A story prints the workers' actions line by line for people.
type story struct {
	start time.Time
	w     io.Writer

	mu    sync.Mutex
	steps []step
	told  chan struct{} // closed and renewed with each step
}

type step struct{ who, what string }

const (
	stopped = "is stopped: kill -STOP"
	resumed = "is resumed: kill -CONT"

	// A worker's reports begin with these words.
	begins   = "begins job "
	finishes = "finishes job "
	loses    = "has lost the lease"
	fails    = "fails: "
)

// errDisturbed: the machine was paused for as long as a job or the lease's TTL, and the story took a different course.
var errDisturbed = errors.New("the machine stood still for too long: others than A were stopped, too; try again")

func newStory(w io.Writer) *story {
	return &story{start: time.Now(), w: w, told: make(chan struct{})}
}

func (s *story) add(who, what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = append(s.steps, step{who, what})
	fmt.Fprintf(s.w, "%5d ms  %s  %s\n", time.Since(s.start).Milliseconds(), who, what)
	close(s.told)
	s.told = make(chan struct{})
}

// wait waits for an event of a worker.
func (s *story) wait(ctx context.Context, who, what string) error {
	for {
		s.mu.Lock()
		done := slices.ContainsFunc(s.steps, func(st step) bool { return st.who == who && st.what == what })
		failed := slices.IndexFunc(s.steps, func(st step) bool { return strings.HasPrefix(st.what, fails) })
		told, disturbed := s.told, s.disturbed()
		s.mu.Unlock()
		switch {
		case disturbed:
			return errDisturbed
		case done:
			return nil
		case failed >= 0:
			return errors.New("a worker " + s.steps[failed].what)
		}
		select {
		case <-told:
		case <-ctx.Done():
			return fmt.Errorf("%s never %s: %w", who, what, ctx.Err())
		}
	}
}

// disturbed reports whether a worker lost or took the lease out of the story's order. In the story, A has the lease
// until A is stopped in the middle of its job, and then B takes and keeps the lease.
func (s *story) disturbed() bool {
	told := func(what string) int {
		if i := slices.IndexFunc(s.steps, func(st step) bool { return st.what == what }); i >= 0 {
			return i
		}
		return len(s.steps)
	}
	stop, resume := told(stopped), told(resumed)
	for i, st := range s.steps {
		lost := strings.HasPrefix(st.what, loses)
		if st.who == "B" && (lost || i < stop && !strings.HasPrefix(st.what, fails)) ||
			st.who == "A" && i < resume && (lost || st.what == fmt.Sprint(finishes, stopAt)) {
			return true
		}
	}
	return false
}

// A worker is a process that reports its actions to the story.
type worker struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when the process has ended, with err
	err   error
}

func startWorker(ctx context.Context, st *story, name string, src *scratch.Database, fenced bool) (*worker, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %v %s", workerEnv, name, src.Driver, fenced, src.DSN))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	w := &worker{cmd: cmd, ended: make(chan struct{})}
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			st.add(name, lines.Text())
		}
		w.err = cmd.Wait()
		close(w.ended)
	}()
	return w, nil
}

func (w *worker) signal(s syscall.Signal) error { return w.cmd.Process.Signal(s) }

// wait waits until the process has ended without a signal.
func (w *worker) wait() error {
	<-w.ended
	return w.err
}

// kill ends the process if it is still running, so that its database can be removed.
func (w *worker) kill() {
	_ = w.cmd.Process.Kill()
	<-w.ended
}
