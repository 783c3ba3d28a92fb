//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package basedriver

import "syscall"

// A socket can't be peeked on this system.
type socket struct{}

func newSocket(syscall.RawConn) *socket { return nil }

func (*socket) peek() (pending bool, err error) { return false, nil }
