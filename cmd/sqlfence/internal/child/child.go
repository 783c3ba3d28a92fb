// Package child runs a command, and can end the command together with its descendants.
package child

import (
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// A Child is a running command. On Unix the command has a separate process group, so that its children get its signals.
// On a terminal the command stays in this process's group, because the terminal sends signals itself, and lets only one
// group read. On Linux, End ends all descendants of the command, in any group or session: this process adopts orphaned
// descendants, and finds all descendants in /proc. Linux kills the command when this process dies.
type Child struct {
	cmd      *exec.Cmd
	grouped  bool
	others   []process     // what this process had started before
	ended    chan struct{} // closed when the command has ended
	err      error         // from then on: of Wait
	mu       sync.Mutex
	finished bool
}

// Start starts a command. terminal reports whether this process's input is a terminal, or the process runs in a
// terminal's foreground.
func Start(cmd *exec.Cmd, terminal bool) (*Child, error) {
	c := &Child{cmd: cmd, grouped: !terminal && groups, ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		// For the kernel, the parent of a process is the thread that started the process.
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

// Status returns the exit status of the command as a shell reports it: 128 plus the number of the signal that killed
// the command, or else the command's own status. It must be called only after the channel Ended is closed. If waiting
// for the command failed, Status returns the error of that wait.
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

// Forward passes on a signal that this process received, unless the command received the signal as well: a terminal
// signals all processes of a group, but the command may have left this process's group.
func (c *Child) Forward(s os.Signal) {
	if !c.grouped && groups && (s == os.Interrupt || s == syscall.SIGQUIT) && inOurGroup(c.cmd.Process.Pid) {
		return
	}
	c.send(s)
}

// send sends a signal to the command, or to its whole group if the command leads a separate group.
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

// killLimit is how long End waits for processes that don't die at once.
const killLimit = time.Second

// End ends the command and its descendants: it sends SIGTERM, and after the grace period kills the remaining processes
// until none is left. End returns when the command has ended.
func (c *Child) End(grace time.Duration) {
	late := time.NewTimer(grace)
	defer late.Stop()
	c.sendAll(syscall.SIGTERM)
	gone := c.gone(late.C)
	for limit := time.Now().Add(killLimit); !gone && time.Now().Before(limit); {
		c.sendAll(os.Kill)
		gone = c.gone(time.After(interval))
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

// interval is the time between two checks for remaining processes.
const interval = 20 * time.Millisecond

// gone waits until the command and its descendants have ended, or late fires.
func (c *Child) gone(late <-chan time.Time) bool {
	select {
	case <-c.ended:
	case <-late:
		return false
	}
	again := time.NewTicker(interval)
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
