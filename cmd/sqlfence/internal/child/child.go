// Package child runs a command that can be ended together with what it has started.
package child

import (
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// A Child is a command that runs. On Unix it has a process group of its own, so that what it
// starts gets its signals, too; but not on a terminal, which sends signals itself, and lets
// only one group read. On Linux it is killed when this process dies.
type Child struct {
	cmd      *exec.Cmd
	grouped  bool
	ended    chan struct{} // closed when the command has ended
	err      error         // from then on: of Wait
	mu       sync.Mutex
	finished bool
}

// Start starts a command. terminal says whether this process's input is one.
func Start(cmd *exec.Cmd, terminal bool) (*Child, error) {
	c := &Child{cmd: cmd, grouped: !terminal && groups, ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The kernel counts the thread that has started a process as its parent.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		prepare(cmd, c.grouped)
		err := cmd.Start()
		started <- err
		if err == nil {
			c.err = cmd.Wait()
			c.finish()
		}
	}()
	return c, <-started
}

func (c *Child) finish() {
	c.mu.Lock()
	c.finished = true
	c.mu.Unlock()
	close(c.ended)
}

// Ended is closed when the command has ended.
func (c *Child) Ended() <-chan struct{} { return c.ended }

// Status returns the status that a shell would give the command, once it has ended, and an error if it
// couldn't be waited for.
func (c *Child) Status() (int, error) {
	state := c.cmd.ProcessState
	if state == nil {
		return 0, c.err
	}
	if status, ok := killedBy(state); ok {
		return status, nil
	}
	return state.ExitCode(), nil
}

// Forward passes a signal on that this process has got, unless the command has got it, too:
// a terminal sends its signals to all processes.
func (c *Child) Forward(s os.Signal) {
	if !c.grouped && groups && (s == os.Interrupt || s == syscall.SIGQUIT) {
		return
	}
	c.send(s)
}

func (c *Child) send(s os.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.grouped {
		signalGroup(c.cmd.Process.Pid, s) // also what outlives the command
	} else if !c.finished {
		c.cmd.Process.Signal(s) // it has ended
	}
}

// End ends the command: it asks by SIGTERM, and kills after the grace what hasn't ended then.
// It returns when the command has ended.
func (c *Child) End(grace time.Duration) {
	late := time.NewTimer(grace)
	defer late.Stop()
	c.send(syscall.SIGTERM)
	if !c.gone(late.C) {
		c.send(os.Kill)
	}
	<-c.ended
}

// gone waits until the command and its group have ended, or it is late.
func (c *Child) gone(late <-chan time.Time) bool {
	select {
	case <-c.ended:
	case <-late:
		return false
	}
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for c.grouped && groupLives(c.cmd.Process.Pid) {
		select {
		case <-again.C:
		case <-late:
			return false
		}
	}
	return true
}
