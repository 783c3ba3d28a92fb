//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package basedriver

import (
	"errors"
	"io"
	"syscall"
)

// A socket can be peeked without consuming data. Only one goroutine at a time uses a socket.
type socket struct {
	conn syscall.RawConn
	recv func(fd uintptr) // sets the fields below; made once, so that peek allocates nothing

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

// peek reports whether unread data is available, without consuming data or waiting. An error means that either side
// has closed the connection, or that the peer has reset it.
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
