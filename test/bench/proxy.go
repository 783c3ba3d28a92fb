package main

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// proxies stand between clients and servers as a network would: they delay what is sent,
// in each direction, and count how often a client sends after the server has answered.
type proxies struct {
	delay     time.Duration
	mu        sync.Mutex
	listeners []net.Listener
	count     atomic.Int64
}

func (p *proxies) trips() int64 { return p.count.Load() }

func (p *proxies) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.listeners {
		_ = l.Close()
	}
}

// before starts a proxy before the server at address, and returns the proxy's address.
func (p *proxies) before(address string) (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	p.mu.Lock()
	p.listeners = append(p.listeners, listener)
	p.mu.Unlock()
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", address)
			if err != nil {
				_ = client.Close()
				continue
			}
			var waiting atomic.Bool // for an answer of the server
			go p.pass(server, client, func() {
				if !waiting.Swap(true) {
					p.count.Add(1)
				}
			})
			go p.pass(client, server, func() { waiting.Store(false) })
		}
	}()
	return listener.Addr().String(), nil
}

// A piece holds bytes of the sender and the time of their delivery.
type piece struct {
	data []byte
	due  time.Time
}

// pass copies from one side to the other with the delay, and calls saw for each piece.
func (p *proxies) pass(to, from net.Conn, saw func()) {
	pieces := make(chan piece, 1024)
	go func() {
		defer to.Close()
		for piece := range pieces {
			time.Sleep(time.Until(piece.due))
			if _, err := to.Write(piece.data); err != nil {
				break
			}
		}
		for range pieces { // until the other side notices
		}
	}()
	defer close(pieces)
	defer from.Close()
	for {
		data := make([]byte, 16<<10)
		n, err := from.Read(data)
		if n > 0 {
			saw()
			pieces <- piece{data[:n], time.Now().Add(p.delay)}
		}
		if err != nil {
			return
		}
	}
}
