package main

import (
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
)

// detach keeps the terminal's Ctrl-C from a child process, which is ended in order; but
// it doesn't outlive this one.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// filesystem returns what kind of filesystem the folder is on.
func filesystem(folder string) string {
	var s syscall.Statfs_t
	if syscall.Statfs(folder, &s) != nil {
		return "unknown"
	}
	switch s.Type {
	case 0xef53:
		return "ext4"
	case 0x58465342:
		return "xfs"
	case 0x9123683e:
		return "btrfs"
	case 0x794c7630:
		return "overlayfs"
	case 0x01021994:
		return "tmpfs: in memory, nothing here is durable"
	}
	return fmt.Sprintf("of type %#x", s.Type)
}

func kernel() string {
	var u syscall.Utsname
	if syscall.Uname(&u) != nil {
		return runtime.GOOS + "/" + runtime.GOARCH
	}
	var release []byte
	for _, c := range u.Release {
		if c == 0 {
			break
		}
		release = append(release, byte(c))
	}
	return fmt.Sprintf("%s %s, %s", runtime.GOOS, release, runtime.GOARCH)
}
