package basedriver

import (
	"context"
	"database/sql/driver"
	"errors"
	"net"
	"reflect"
	"testing"
	"time"
)

// pipe returns the two ends of a connection on loopback.
func pipe(t *testing.T) (here, there *net.TCPConn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return client.(*net.TCPConn), server.(*net.TCPConn)
}

// A pingConn answers a Ping with an error, or not, and counts.
type pingConn struct {
	driver.Conn
	err   error
	pings int
}

func (c *pingConn) Ping(context.Context) error { c.pings++; return c.err }

// If the other side has closed or reset the connection, Alive finds this without a round trip. If unread bytes have
// come in, Alive pings the connection by the driver.
func TestLinkOfASocket(t *testing.T) {
	if here, _ := pipe(t); socketOf(here) == nil {
		t.Skip("sockets can't be looked at here")
	}
	write := func(_, there *net.TCPConn) error { _, err := there.Write([]byte("N")); return err }
	for _, tt := range []struct {
		name  string
		event func(here, there *net.TCPConn) error
		ping  error
		alive bool
		pings int
	}{
		{"nothing", func(_, _ *net.TCPConn) error { return nil }, nil, true, 0},
		{"closed", func(_, there *net.TCPConn) error { return there.Close() }, nil, false, 0},
		{"reset", func(_, there *net.TCPConn) error { return errors.Join(there.SetLinger(0), there.Close()) }, nil, false, 0},
		{"closed here", func(here, _ *net.TCPConn) error { return here.Close() }, nil, false, 0},
		{"a notice", write, nil, true, 1},
		{"last words", func(here, there *net.TCPConn) error { return errors.Join(write(here, there), there.Close()) }, driver.ErrBadConn, false, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			here, there := pipe(t)
			conn := &pingConn{err: tt.ping}
			l := Liveness{socket: socketOf(here), pinger: conn}
			if !l.Alive(t.Context()) || conn.pings != 0 {
				t.Fatal("a fresh connection isn't alive, or was asked")
			}
			if err := tt.event(here, there); err != nil {
				t.Fatal(err)
			}
			for deadline := time.Now().Add(2 * time.Minute); tt.name != "nothing" && l.socket != nil; { // until it arrives
				if pending, err := l.socket.peek(); pending || err != nil || time.Now().After(deadline) {
					break
				}
			}
			if tt.name == "reset" { // looking takes the error away, and leaves the connection closed
				if _, err := here.Write([]byte("Q")); err == nil {
					t.Error("the connection isn't reset")
				}
			}
			if got := l.Alive(t.Context()); got != tt.alive || conn.pings != tt.pings {
				t.Errorf("alive: %v after %d pings, want %v after %d", got, conn.pings, tt.alive, tt.pings)
			}
			if tt.alive { // the bytes that came in are still unread
				if pending, err := l.socket.peek(); err != nil || pending != (tt.pings > 0) {
					t.Errorf("pending: %v, %v", pending, err)
				}
			}
		})
	}
}

// The connections of lib/pq and pgx, as far as they are looked into.
type (
	pqLike struct {
		driver.Conn
		c net.Conn
	}
	pgxLike struct {
		bareDriverConn
		conn *pgxConnLike
	}
	pgxConnLike struct {
		pg     *pgConnLike
		closed bool
	}
	pgConnLike struct{ conn net.Conn }
	tlsLike    struct{ net.Conn }
)

func (c pgxLike) Conn() *pgxConnLike       { return c.conn }
func (c *pgxConnLike) PgConn() *pgConnLike { return c.pg }
func (c *pgxConnLike) IsClosed() bool      { return c.closed }
func (c *pgConnLike) Conn() net.Conn       { return c.conn }
func (c *tlsLike) NetConn() net.Conn       { return c.Conn }

func TestLinkReachesTheSocket(t *testing.T) {
	here, _ := pipe(t)
	for name, conn := range map[string]net.Conn{"plain": here, "TLS": &tlsLike{here}} {
		pq, state := reachPq(&pqLike{c: conn})
		if pq != conn || state != nil || (socketOf(pq) == nil) != (socketOf(here) == nil) {
			t.Errorf("%s: lib/pq's connection is %v", name, pq)
		}
		raw := &pgxConnLike{pg: &pgConnLike{conn}}
		pgx, state := reachPgx(pgxLike{conn: raw})
		if pgx != conn || state != closer(raw) {
			t.Errorf("%s: pgx's connection is %v, %v", name, pgx, state)
		}
	}
	// Another version may have nothing of the kind.
	for _, conn := range []driver.Conn{nil, &pingConn{}, pingless{}, &pqLike{}, (*pqLike)(nil)} {
		if conn != nil {
			if pq, _ := reachPq(conn); pq != nil {
				t.Errorf("%T has the connection %v", conn, pq)
			}
		}
		if conn != nil && reflect.TypeOf(conn) != reflect.TypeFor[*pqLike]() {
			if pgx, _ := reachPgx(conn); pgx != nil {
				t.Errorf("%T has the connection %v", conn, pgx)
			}
		}
	}
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if socketOf(a) != nil || socketOf(nil) != nil {
		t.Error("a pipe has a socket")
	}
}

type pingless struct{ driver.Conn }

// A bareDriverConn is a driver.Conn that may have a method Conn.
type bareDriverConn struct{}

func (bareDriverConn) Prepare(string) (driver.Stmt, error) { return nil, driver.ErrSkip }
func (bareDriverConn) Close() error                        { return nil }
func (bareDriverConn) Begin() (driver.Tx, error)           { return nil, driver.ErrSkip }

// pgx reports whether it has closed its connection: an error on an open connection occurred before anything was sent.
func TestLinkOfPgx(t *testing.T) {
	raw := new(pgxConnLike)
	l := Liveness{state: raw}
	if !l.Open() || l.Closed() {
		t.Error("an open connection isn't")
	}
	raw.closed = true
	if l.Open() || !l.Closed() || l.Alive(t.Context()) {
		t.Error("a closed connection is open")
	}
	if unknown := new(Liveness); unknown.Open() || unknown.Closed() || !unknown.Alive(t.Context()) {
		t.Error("of a connection that tells nothing something is known")
	}
}
