//go:build !linux

package child

import (
	"os"
	"syscall"
)

// A process is a command's descendant, which is unknown on this system.
type process struct{ pid, group int }

func (process) signal(os.Signal) {}

// InForeground isn't known here.
func InForeground() bool { return false }

func adopt() []process { return nil }

func reap(int, <-chan struct{}) {}

func descendants([]process) []process { return nil }

// leaves reports whether something is left in the command's group.
func (c *Child) leaves() bool { return c.grouped && groupLives(c.cmd.Process.Pid) }

func dieWithParent(*syscall.SysProcAttr) {}
