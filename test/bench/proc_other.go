//go:build unix && !linux

package main

import (
	"os/exec"
	"runtime"
	"syscall"
)

// detach keeps the terminal's Ctrl-C from a child process: it is ended in order.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func filesystem(string) string { return "unknown" }

func kernel() string { return runtime.GOOS + "/" + runtime.GOARCH }
