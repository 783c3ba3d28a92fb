package harness

import (
	"net"
	"sync"
	"testing"
)

// A Stall stands before the server. While it is on, nothing passes in either direction, and all connections stay open:
// the network stands still. Afterwards what was sent arrives.
type Stall struct {
	DSN string // through it

	mu sync.Mutex
	on chan struct{} // closed when the stall ends; nil while everything passes
}

// NewStall starts a Stall before the server of dsn.
func NewStall(t *testing.T, dsn string) *Stall {
	t.Helper()
	s := new(Stall)
	s.DSN = Relay(t, dsn, func(client, server net.Conn) {
		go Pass(server, client, s.wait)
		Pass(client, server, s.wait)
	})
	return s
}

// Begin stops the network.
func (s *Stall) Begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on = make(chan struct{})
}

// End lets everything pass.
func (s *Stall) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.on)
	s.on = nil
}

func (s *Stall) wait([]byte) {
	s.mu.Lock()
	on := s.on
	s.mu.Unlock()
	if on != nil {
		<-on
	}
}
