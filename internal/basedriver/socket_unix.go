//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package basedriver

import (
	"errors"
	"io"
	"syscall"
)

// A socket is one that can be looked at without reading from it. It is used by one
// goroutine at a time.
type socket struct {
	conn syscall.RawConn
	recv func(fd uintptr) // fills in the rest; made once, so that a look allocates nothing

	next [1]byte
	n    int
	err  error
}

func newSocket(conn syscall.RawConn) *socket {
	s := &socket{conn: conn}
	s.recv = func(fd uintptr) {
		for {
			s.n, _, s.err = syscall.Recvfrom(int(fd), s.next[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
			if !errors.Is(s.err, syscall.EINTR) {
				return
			}
		}
	}
	return s
}

// peek looks whether something has come in, and leaves it there. It doesn't wait. An
// error means that the peer has closed or reset the connection, or that it is closed
// here.
func (s *socket) peek() (pending bool, err error) {
	if err := s.conn.Control(s.recv); err != nil {
		return false, err
	}
	switch {
	case errors.Is(s.err, syscall.EAGAIN):
		return false, nil
	case s.err == nil && s.n == 0:
		return false, io.EOF
	}
	return s.n > 0, s.err
}
