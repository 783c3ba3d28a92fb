package harness

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/sqlfence/sqlfence/internal/test/need"

	"github.com/go-sql-driver/mysql"
)

// A Proxy stands before the server and counts how often it answers what a client has sent.
// MySQL's clients close statements without an answer. pgx's ping doesn't count: it comes when a connection
// was idle for a second, as in a pause.
type Proxy struct {
	DSN string // through it

	mu       sync.Mutex
	count    int
	answered bool
}

// pgxPing is the message by which pgx asks whether a connection is alive.
const pgxPing = "Q\x00\x00\x00\x0c-- ping\x00"

// NewProxy starts a proxy before the server of dsn.
func NewProxy(t *testing.T, dsn string) *Proxy {
	t.Helper()
	p := &Proxy{answered: true}
	p.DSN = Relay(t, dsn, func(client, server net.Conn) {
		go Pass(server, client, func(sent []byte) {
			if string(sent) != pgxPing {
				p.saw(false)
			}
		})
		Pass(client, server, func([]byte) { p.saw(true) })
	})
	return p
}

// Relay listens for clients, connects each to the server of dsn, and lets serve
// pass on what they send. It returns the DSN for the clients.
func Relay(t *testing.T, dsn string, serve func(client, server net.Conn)) string {
	t.Helper()
	host, to := ServerOf(t, dsn)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", host)
			if err != nil {
				_ = client.Close()
				continue
			}
			go serve(client, server)
		}
	}()
	return to(listener.Addr().String())
}

// ServerOf returns the address of a DSN's server, and a function that returns the DSN with another address.
func ServerOf(t *testing.T, dsn string) (address string, with func(address string) string) {
	t.Helper()
	if cfg, err := mysql.ParseDSN(dsn); err == nil && cfg.Net == "tcp" {
		return cfg.Addr, func(address string) string { cfg.Addr = address; return cfg.FormatDSN() }
	}
	u, err := url.Parse(dsn)
	if err != nil || u.Host == "" {
		need.Missing(t, "postgres", fmt.Sprint("needs a DSN with a host: ", err))
	}
	return u.Host, func(address string) string { u.Host = address; return u.String() }
}

// Pass copies from one side to the other, and calls before with each piece.
func Pass(to, from net.Conn, before func(piece []byte)) {
	defer to.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			before(buf[:n])
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			if err != io.EOF {
				_ = from.Close()
			}
			return
		}
	}
}

func (p *Proxy) saw(answer bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if answer && !p.answered {
		p.count++
	}
	p.answered = answer
}

// Trips returns how many round trips do takes.
func (p *Proxy) Trips(do func()) int {
	p.mu.Lock()
	p.count, p.answered = 0, true
	p.mu.Unlock()
	do()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count
}
