//go:build linux

package storm

import (
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A Wire stands between the fences and the server, and breaks.
type Wire struct {
	DSN string // through it; of several servers all, with blanks between them

	delay atomic.Int64 // of each piece, in nanoseconds

	mu    sync.Mutex
	armed []Break
	stall *Stall
}

// A Stall is a connection that stands still, for a while, between two of the messages that it sends.
type Stall struct {
	after   int // messages that go through
	link    *link
	Reached chan struct{} // closed when it stands still
	over    chan struct{}
}

// Stall stops the next sending connection after the given number of its messages.
func (w *Wire) Stall(after int) *Stall {
	s := &Stall{after: after, Reached: make(chan struct{}), over: make(chan struct{})}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stall = s
	return s
}

// GoOn ends a stall.
func (w *Wire) GoOn(s *Stall) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stall = nil
	close(s.over)
}

// wait stands still where the connection is to.
func (w *Wire) wait(l *link) {
	w.mu.Lock()
	s := w.stall
	if s != nil && s.link == nil {
		s.link = l
	}
	if s == nil || s.link != l {
		w.mu.Unlock()
		return
	}
	s.after--
	stands := s.after == -1
	w.mu.Unlock()
	if stands {
		close(s.Reached)
		<-s.over
	}
}

// A Break is a place where a connection breaks.
type Break string

const (
	BeforeRequest Break = "cut before the request" // the server gets nothing
	InRequest     Break = "cut in the request"
	BeforeReply   Break = "cut before the reply" // the server has done it
	InReply       Break = "cut in the reply"
	Hole          Break = "black hole" // nothing comes through, in either direction, and neither side is told
)

// Breaks are all of them.
var Breaks = []Break{BeforeRequest, InRequest, BeforeReply, InReply, Hole}

// NewWire starts a wire before the servers of data source names.
func NewWire(t *testing.T, servers ...string) *Wire {
	t.Helper()
	w := new(Wire)
	var through []string
	for _, dsn := range servers {
		through = append(through, harness.Relay(t, dsn, func(client, server net.Conn) {
			l := &link{wire: w, client: client, server: server}
			go l.requests()
			l.replies()
		}))
	}
	w.DSN = strings.Join(through, " ")
	return w
}

// Arm has the next connection break on which something is sent.
func (w *Wire) Arm(b Break) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armed = append(w.armed, b)
}

// Delay delays all bytes in each direction until the next call of Delay or Mend.
func (w *Wire) Delay(d time.Duration) { w.delay.Store(int64(d)) }

// Mend has nothing break any more.
func (w *Wire) Mend() {
	w.Delay(0)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armed = nil
}

func (w *Wire) next() Break {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.armed) == 0 {
		return ""
	}
	b := w.armed[0]
	w.armed = w.armed[1:]
	return b
}

// A link is a connection through the wire.
type link struct {
	wire           *Wire
	client, server net.Conn
	broken         atomic.Value // the Break that waits for the reply, or the hole
}

// holeLasts is how long a connection stays in a black hole: longer than fences wait.
const holeLasts = 8 * time.Second

func (l *link) end() {
	_ = l.client.Close()
	_ = l.server.Close()
}

func (l *link) requests() {
	defer l.end()
	l.pass(l.server, l.client, func(piece []byte) (send int, goOn bool) {
		if l.isHole() {
			return 0, true
		}
		l.wire.wait(l)
		switch b := l.wire.next(); b {
		case BeforeRequest:
			return 0, false
		case InRequest:
			return len(piece) / 2, false
		case BeforeReply, InReply:
			l.broken.Store(b)
		case Hole:
			l.broken.Store(b)
			time.AfterFunc(holeLasts, l.end)
			return 0, true
		}
		return len(piece), true
	})
}

func (l *link) replies() {
	defer l.end()
	l.pass(l.client, l.server, func(piece []byte) (send int, goOn bool) {
		switch b, _ := l.broken.Load().(Break); b {
		case BeforeReply:
			return 0, false
		case InReply:
			return len(piece) / 2, false
		case Hole:
			return 0, true
		}
		return len(piece), true
	})
}

func (l *link) isHole() bool {
	b, _ := l.broken.Load().(Break)
	return b == Hole
}

// pass copies a connection's bytes to the peer, as far as judge admits.
func (l *link) pass(to, from net.Conn, judge func(piece []byte) (send int, goOn bool)) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if d := l.wire.delay.Load(); d > 0 {
				time.Sleep(time.Duration(d))
			}
			send, goOn := judge(buf[:n])
			if _, err := to.Write(buf[:send]); err != nil || !goOn {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
