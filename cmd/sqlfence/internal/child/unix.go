//go:build unix

package child

import (
	"os"
	"os/exec"
	"syscall"
)

const groups = true

func prepare(cmd *exec.Cmd, group bool) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: group}
	dieWithParent(cmd.SysProcAttr)
}

func signalGroup(leader int, s os.Signal) {
	syscall.Kill(-leader, s.(syscall.Signal)) // there may be no process left
}

func leads(pid int) bool {
	group, err := syscall.Getpgid(pid)
	return err == nil && group == pid
}

func inOurGroup(pid int) bool {
	group, err := syscall.Getpgid(pid)
	return err == nil && group == syscall.Getpgrp()
}

// killedBy returns 128 and the number of the signal that has ended a process.
func killedBy(state *os.ProcessState) (status int, ok bool) {
	wait, ok := state.Sys().(syscall.WaitStatus)
	if !ok || !wait.Signaled() {
		return 0, false
	}
	return 128 + int(wait.Signal()), true
}

// Signals are the signals that are passed on to a command.
var Signals = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1,
	syscall.SIGUSR2}
