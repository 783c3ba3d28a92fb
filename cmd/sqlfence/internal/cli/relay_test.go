//go:build unix

package cli

import (
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"github.com/sqlfence/sqlfence/cmd/sqlfence/internal/child"
)

// A signal that arrives while the command is being started is passed to the command.
func TestSignalDuringStart(t *testing.T) {
	r := newRelay(child.Signals...)
	defer r.stop()
	c, err := r.start(func() (*child.Child, error) {
		r.signals <- syscall.SIGUSR1
		for len(r.signals) > 0 { // until the relay has received it
			runtime.Gosched()
		}
		return child.Start(exec.Command("sleep", "60"), false)
	})
	if err != nil {
		t.Fatal(err)
	}
	<-c.Ended()
	status, err := c.Status()
	if want := 128 + int(syscall.SIGUSR1); status != want || err != nil {
		t.Errorf("status %d, %v; want %d", status, err, want)
	}
	if r.ctx.Err() != nil {
		t.Error("the signal has ended the lease's context")
	}
}

// A signal before the command's start ends the wait for the lease.
func TestSignalBeforeStart(t *testing.T) {
	r := newRelay(child.Signals...)
	defer r.stop()
	r.signals <- syscall.SIGTERM
	<-r.ctx.Done()
	err := interrupted(r.ctx, r.ctx.Err())
	if got, want := (&app{runs: true}).status(err), 128+int(syscall.SIGTERM); got != want {
		t.Errorf("status %d of %v, want %d", got, err, want)
	}
}
