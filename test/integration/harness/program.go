package harness

import (
	"net"
	"os/exec"
	"strings"
	"testing"
)

// FreeAddress and Run are for servers that aren't databases.

// FreeAddress returns an address of the loopback that is free by now.
func FreeAddress(t *testing.T) (address, port string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err = net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return l.Addr().String(), port
}

// Run runs a server until the test ends, and waits until it listens.
func Run(t *testing.T, address, program string, args ...string) {
	t.Helper()
	cmd := exec.Command(program, args...)
	log := new(strings.Builder)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log)
		}
	})
	Eventually(t, program+" listens", func() bool {
		c, err := net.Dial("tcp", address)
		if err != nil {
			return false
		}
		_ = c.Close()
		return true
	})
}
