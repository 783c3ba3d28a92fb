package harness

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// A Fault is what becomes of a message to MySQL, or of its answer.
type Fault int

const (
	NoFault   Fault = iota
	Unsent          // the connection breaks before a byte is sent
	CutShort        // in the middle of the message
	Closed          // behind it: the server has answered, and the client sees the end
	Reset           // likewise, and the client sees an error
	TornReply       // likewise, within the answer
	Faults          // how many there are
)

// Gone is a fault of the whole network, for ever: neither the message arrives nor anything after it, on any connection,
// and the server doesn't detect the client's end. A host without power behaves like this, and, for the server, a
// stopped process.
const Gone Fault = -1

// A Faulty is a network in which the next selected message meets a fault.
type Faulty struct {
	mu     sync.Mutex
	next   Fault
	wanted func(command byte, text []byte) bool
	met    bool
	gone   chan struct{} // closed by the message that met it
	lost   []net.Conn
	ended  bool
}

// Arm sets the fault of the next message that wanted selects.
func (f *Faulty) Arm(next Fault, wanted func(command byte, text []byte) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next, f.wanted, f.met = next, wanted, false
}

// End has the server learn of the end of what was [Gone].
func (f *Faulty) End() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, conn := range f.lost {
		_ = conn.Close()
	}
	f.lost, f.ended = nil, true
}

// isGone reports whether all is over.
func (f *Faulty) isGone() bool {
	select {
	case <-f.gone:
		return true
	default:
		return false
	}
}

func (f *Faulty) take(message []byte) Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.wanted == nil || len(message) < 5 || !f.wanted(message[4], message[5:]) {
		return NoFault
	}
	f.wanted = nil
	f.met = true
	if f.next == Gone {
		close(f.gone)
	}
	return f.next
}

// Met reports whether a message has met the fault.
func (f *Faulty) Met() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.met
}

var networks atomic.Int64

// DSN returns the data source name through the network.
func (f *Faulty) DSN(t testing.TB, dsn string) string {
	t.Helper()
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	_ = mysql.SetLogger(&mysql.NopLogger{}) // of each fault it says a line
	under := cfg.Net
	cfg.Net = fmt.Sprint("faulty", networks.Add(1))
	if f.gone == nil {
		f.gone = make(chan struct{})
		t.Cleanup(f.End)
	}
	mysql.RegisterDialContext(cfg.Net, func(ctx context.Context, addr string) (net.Conn, error) {
		if f.isGone() {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		conn, err := new(net.Dialer).DialContext(ctx, under, addr)
		return &faultyConn{Conn: conn, network: f, closed: make(chan struct{})}, err
	})
	return cfg.FormatDSN()
}

// A faultyConn is used for messages of one piece.
type faultyConn struct {
	net.Conn
	network *Faulty
	fault   Fault // of the answer
	broken  error
	closing sync.Once
	closed  chan struct{}
}

func (c *faultyConn) Write(b []byte) (int, error) {
	if c.broken != nil {
		return 0, c.broken
	}
	if c.network.isGone() {
		return len(b), nil
	}
	switch what := c.network.take(b); what {
	case Gone:
		return len(b), nil
	case Unsent:
		c.broken = &net.OpError{Op: "write", Net: "tcp", Err: syscall.EPIPE}
		return 0, c.broken
	case CutShort:
		c.broken = &net.OpError{Op: "write", Net: "tcp", Err: syscall.ECONNRESET}
		n, _ := c.Conn.Write(b[:len(b)/2])
		_ = c.Conn.Close()
		return n, c.broken
	default:
		c.fault = what
	}
	return c.Conn.Write(b)
}

func (c *faultyConn) Read(b []byte) (int, error) {
	if c.broken != nil {
		return 0, c.broken
	}
	if c.network.isGone() {
		<-c.closed
		return 0, net.ErrClosed
	}
	n, err := c.Conn.Read(b)
	switch c.fault {
	case Closed:
		n, c.broken = 0, io.EOF
	case Reset:
		n, c.broken = 0, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	case TornReply:
		n, c.broken = n/2, io.EOF
		return n, nil
	default:
		return n, err
	}
	_ = c.Conn.Close()
	return n, c.broken
}

func (c *faultyConn) Close() error {
	c.closing.Do(func() { close(c.closed) })
	if !c.network.isGone() {
		return c.Conn.Close()
	}
	c.network.mu.Lock()
	defer c.network.mu.Unlock()
	if c.network.ended {
		return c.Conn.Close()
	}
	c.network.lost = append(c.network.lost, c.Conn)
	return c.Conn.SetReadDeadline(time.Unix(1, 0)) // it was waiting for an answer
}
