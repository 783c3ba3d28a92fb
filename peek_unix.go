//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package sqlfence

import (
	"errors"
	"io"
	"syscall"
)

const canPeek = true

// peek looks whether something has come in on a socket, and leaves it there. It
// doesn't wait. An error means that the peer has closed or reset the connection, or
// that it is closed here.
func peek(socket syscall.RawConn) (pending bool, err error) {
	closed := socket.Control(func(fd uintptr) {
		var one [1]byte
		for {
			var n int
			n, _, err = syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
			if errors.Is(err, syscall.EINTR) {
				continue
			}
			pending = n > 0
			switch {
			case errors.Is(err, syscall.EAGAIN):
				err = nil // nothing has come in
			case err == nil && n == 0:
				err = io.EOF
			}
			return
		}
	})
	if closed != nil {
		return false, closed
	}
	return pending, err
}
