//go:build unix

package cli

import (
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// readerGone returns the error SIGPIPE if out is a pipe that no process reads any more, as after "watch | head -1", else nil.
// It doesn't wait. The command watch calls it, because it may write nothing for long, and wouldn't notice.
func readerGone(out io.Writer) error {
	f, ok := out.(*os.File)
	if !ok {
		return nil
	}
	fds := []unix.PollFd{{Fd: int32(f.Fd())}}
	if n, err := unix.Poll(fds, 0); err == nil && n > 0 && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0 {
		return &signalError{syscall.SIGPIPE}
	}
	return nil
}
