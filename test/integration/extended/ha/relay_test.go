//go:build linux

package ha_test

import (
	"net"
	"sync"
	"testing"

	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A relay forwards a node's connections to etcd, and can be cut.
type relay struct {
	port, to string

	mu    sync.Mutex
	isCut bool
	open  map[net.Conn]bool
}

func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{port: port, to: to, open: make(map[net.Conn]bool)}
	t.Cleanup(func() {
		_ = listener.Close()
		r.cut()
	})
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go r.pass(client)
		}
	}()
	return r
}

func (r *relay) pass(client net.Conn) {
	server, err := net.Dial("tcp", r.to)
	if err != nil {
		_ = client.Close()
		return
	}
	if !r.keep(client, server) {
		return
	}
	go harness.Pass(server, client, func([]byte) {})
	harness.Pass(client, server, func([]byte) {})
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, client)
	delete(r.open, server)
}

// keep records open connections. If the relay is cut, it closes them and returns false.
func (r *relay) keep(conns ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range conns {
		if r.isCut {
			_ = c.Close()
		} else {
			r.open[c] = true
		}
	}
	return !r.isCut
}

// cut closes all connections, and accepts no new ones until mend is called.
func (r *relay) cut() (mend func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isCut = true
	for c := range r.open {
		_ = c.Close()
	}
	clear(r.open)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.isCut = false
	}
}
