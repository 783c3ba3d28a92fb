package drivers

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/sqlfence/sqlfence"
)

// What the base driver is asked to do in one call may still be several round
// trips on the network; so these are counted where they happen.
func TestG6OneRoundTripOnTheNetwork(t *testing.T) {
	for _, fence := range fences {
		t.Run(fence.name, func(t *testing.T) {
			eachBase(t, func(t *testing.T, b base) {
				if b.dialect != sqlfence.Postgres {
					t.Skip("SQLite has no network")
				}
				sh := setting{base: b}.shop(t)
				p := newProxy(t, sh.source)
				db, plain := b.fenced(t, p.dsn, books(fence.rule)), b.raw(t, p.dsn)
				for _, f := range forms {
					for _, w := range rowWrites {
						// pgx prepares at first, so the third time counts.
						var want int
						for range 3 {
							sh.reset(t, 9)
							want = p.trips(func() { _, _ = f.run(t.Context(), plain, w) })
						}
						for range 3 {
							sh.reset(t, 9)
							if n, err := f.run(holding(t, 9), db, w); n != 1 || err != nil {
								t.Fatalf("%s by %s: %d rows, %v", w.name, f.name, n, err)
							}
						}
						var err error
						sh.reset(t, 9)
						if got := p.trips(func() { _, err = f.run(holding(t, 9), db, w) }); got != want || err != nil {
							t.Errorf("%s by %s: %d round trips, %v; plain: %d", w.name, f.name, got, err, want)
						}
						sh.reset(t, 9)
						got := p.trips(func() { _, err = f.run(holding(t, 8), db, w) })
						wantStale(t, err, 8, 9)
						if got > want {
							t.Errorf("refusal of %s by %s: %d round trips; plain: %d", w.name, f.name, got, want)
						}
					}
				}
			})
		})
	}
}

// A proxy stands before the server and counts how often a client sends after the
// server has answered.
type proxy struct {
	dsn string

	mu       sync.Mutex
	count    int
	answered bool
}

func newProxy(t *testing.T, dsn string) *proxy {
	t.Helper()
	p := &proxy{answered: true}
	p.dsn = relay(t, dsn, func(client, server net.Conn) {
		go pass(server, client, func() { p.saw(false) })
		pass(client, server, func() { p.saw(true) })
	})
	return p
}

// relay listens for clients, connects each to the server of dsn, and lets serve
// pass on what they send. It returns the DSN for the clients.
func relay(t *testing.T, dsn string, serve func(client, server net.Conn)) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil || u.Host == "" {
		t.Skipf("needs a URL with a host as the DSN: %v", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	host := u.Host
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
	u.Host = listener.Addr().String()
	return u.String()
}

// pass copies from one side to the other, and tells before each piece.
func pass(to, from net.Conn, tell func()) {
	defer to.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			tell()
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

func (p *proxy) saw(answer bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !answer && p.answered {
		p.count++
	}
	p.answered = answer
}

// trips returns how many round trips do takes.
func (p *proxy) trips(do func()) int {
	p.mu.Lock()
	p.count, p.answered = 0, true
	p.mu.Unlock()
	do()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count
}
