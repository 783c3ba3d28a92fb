package harness

import (
	"net"
	"sync"
	"testing"
)

// A Blackhole stands before the server. Once armed, connections on which a client
// sends something swallow it and all that comes after, in both directions, and stay
// open: as with a host that has gone, or a firewall that has forgotten them.
type Blackhole struct {
	DSN string // through it

	mu        sync.Mutex
	left      int // how many connections are to be swallowed yet
	swallowed int
	lost      []net.Conn
}

func newBlackhole(t *testing.T, dsn string) *Blackhole {
	t.Helper()
	h := new(Blackhole)
	h.DSN = Relay(t, dsn, func(client, server net.Conn) {
		var gone sync.Once
		dead := make(chan struct{})
		go func() {
			defer server.Close()
			buf := make([]byte, 64<<10)
			for {
				n, err := client.Read(buf)
				if err != nil {
					return
				}
				if h.swallows(client) {
					gone.Do(func() { close(dead) })
				}
				select {
				case <-dead:
					continue
				default:
				}
				if _, err := server.Write(buf[:n]); err != nil {
					return
				}
			}
		}()
		buf := make([]byte, 64<<10)
		for {
			n, err := server.Read(buf)
			select {
			case <-dead:
				return
			default:
			}
			if err != nil {
				_ = client.Close()
				return
			}
			if _, err := client.Write(buf[:n]); err != nil {
				return
			}
		}
	})
	return h
}

// Arm swallows the next n connections on which something is sent.
func (h *Blackhole) Arm(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.left, h.swallowed = n, 0
}

func (h *Blackhole) swallows(client net.Conn) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.left == 0 {
		return false
	}
	h.left--
	h.swallowed++
	h.lost = append(h.lost, client)
	return true
}

// Count returns how many connections it has swallowed since Arm.
func (h *Blackhole) Count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.swallowed
}

// End breaks the connections that were swallowed.
func (h *Blackhole) End() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, conn := range h.lost {
		_ = conn.Close()
	}
	h.left, h.lost = 0, nil
}

// EachBlackhole runs test on every driver that goes over the network, with enough idle
// connections through the black hole.
func EachBlackhole(t *testing.T, test func(t *testing.T, b Base, h *Blackhole)) {
	t.Helper()
	EachBase(t, func(t *testing.T, b Base) {
		if !b.dialect(t).networked {
			t.Skip("there is no network")
		}
		dsn := b.DSN(t)
		NewLeases(t, b.Raw(t, dsn))
		test(t, b, newBlackhole(t, dsn))
	})
}
