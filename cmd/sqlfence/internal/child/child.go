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
// only one group read. On Linux all that it has started is ended with it, in whatever group or session: this
// process becomes the parent of what loses its own, and finds its descendants in /proc. There the command is
// killed when this process dies.
type Child struct {
	cmd      *exec.Cmd
	grouped  bool
	others   []process     // what this process had started before
	ended    chan struct{} // closed when the command has ended
	err      error         // from then on: of Wait
	mu       sync.Mutex
	finished bool
}

// Start starts a command. terminal says whether this process's input is one, or it is in the foreground of one.
func Start(cmd *exec.Cmd, terminal bool) (*Child, error) {
	c := &Child{cmd: cmd, grouped: !terminal && groups, ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The kernel counts the thread that has started a process as its parent.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		prepare(cmd, c.grouped)
		c.others = adopt()
		err := cmd.Start()
		started <- err
		if err == nil {
			go reap(cmd.Process.Pid, c.ended)
			c.err = cmd.Wait()
			c.mu.Lock()
			c.finished = true
			c.mu.Unlock()
			close(c.ended)
		}
	}()
	return c, <-started
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
// a terminal sends its signals to all processes of a group. A command may have left ours.
func (c *Child) Forward(s os.Signal) {
	if !c.grouped && groups && (s == os.Interrupt || s == syscall.SIGQUIT) && inOurGroup(c.cmd.Process.Pid) {
		return
	}
	c.send(s)
}

// send sends a signal to the command, and to its group if that is its own.
func (c *Child) send(s os.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	pid := c.cmd.Process.Pid
	switch {
	case c.grouped:
		signalGroup(pid, s) // also what outlives the command
	case c.finished:
	case leads(pid):
		signalGroup(pid, s)
	default:
		c.cmd.Process.Signal(s) // it has ended
	}
}

// killLimit is how long what can't be killed at once is waited for.
const killLimit = time.Second

// End ends the command and what it has started: it asks by SIGTERM, and kills after the grace what hasn't
// ended then, until nothing is left. It returns when the command has ended.
func (c *Child) End(grace time.Duration) {
	late := time.NewTimer(grace)
	defer late.Stop()
	c.sendAll(syscall.SIGTERM)
	gone := c.gone(late.C)
	for limit := time.Now().Add(killLimit); !gone && time.Now().Before(limit); {
		c.sendAll(os.Kill)
		gone = c.gone(time.After(pause))
	}
	<-c.ended
}

func (c *Child) sendAll(s os.Signal) {
	pid := c.cmd.Process.Pid
	together := c.grouped || leads(pid)
	family := descendants(c.others)
	c.send(s)
	for _, p := range family {
		if p.pid != pid && !(together && p.group == pid) {
			p.signal(s)
		}
	}
}

// pause is that between two looks at what is left.
const pause = 20 * time.Millisecond

// gone waits until the command and what it has started have ended, or it is late.
func (c *Child) gone(late <-chan time.Time) bool {
	select {
	case <-c.ended:
	case <-late:
		return false
	}
	again := time.NewTicker(pause)
	defer again.Stop()
	for c.leaves() {
		select {
		case <-again.C:
		case <-late:
			return false
		}
	}
	return true
}
