//go:build unix && !linux

package child

import "syscall"

func groupLives(leader int) bool { return syscall.Kill(-leader, 0) == nil }
