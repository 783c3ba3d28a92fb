package errors_test

import (
	"bufio"
	"bytes"
	"database/sql"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/sqlfence/sqlfence/internal/test/need"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A cutter is a proxy for PostgreSQL. Once armed, it cuts off one reply: the server applies the statement, and the
// client doesn't learn this.
type cutter struct {
	dsn string
	raw *sql.DB // a bare database that connects through the cutter

	mu     sync.Mutex
	armed  bool
	tag    string // the tag of the reply to cut off
	cut    cut
	landed int // how many statements with such a tag have changed a row
}

// A cut is the place in a reply from which on the client gets nothing, and how the connection ends.
type cut struct {
	name  string
	place func(reply []byte, complete, ready int) int // by the places of the last two messages
	reset bool                                        // the connection is reset, not closed
}

var cuts = []cut{
	{"all of the reply, closed", func([]byte, int, int) int { return 0 }, false},
	{"all of the reply, reset", func([]byte, int, int) int { return 0 }, true},
	{"before CommandComplete", func(_ []byte, complete, _ int) int { return complete }, false},
	{"inside CommandComplete", func(_ []byte, complete, _ int) int { return complete + 3 }, false},
	{"before ReadyForQuery", func(_ []byte, _, ready int) int { return ready }, false},
	{"inside ReadyForQuery", func(reply []byte, _, _ int) int { return len(reply) - 1 }, false},
}

func newCutter(t *testing.T, dsn string) *cutter {
	t.Helper()
	if !strings.Contains(dsn, "sslmode=disable") {
		need.Missing(t, "postgres", "needs sslmode=disable in the DSN to read along")
	}
	c := new(cutter)
	c.dsn = harness.Relay(t, dsn, func(client, server net.Conn) {
		go harness.Pass(server, client, func([]byte) {})
		c.replies(client, server)
	})
	return c
}

// arm cuts off the next reply whose tag starts with tag.
func (c *cutter) arm(tag string, cut cut) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.armed, c.tag, c.cut, c.landed = true, tag, cut, 0
}

// disarm returns whether a reply was cut off, and how many statements have changed a row since arm.
func (c *cutter) disarm() (done bool, landed int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	done, landed = !c.armed, c.landed
	c.armed, c.tag = false, ""
	return done, landed
}

// replies forwards replies, each as a whole. When a reply's last message has come, the statement is committed.
func (c *cutter) replies(client, server net.Conn) {
	defer client.Close()
	defer server.Close()
	in := bufio.NewReader(server)
	var reply []byte
	complete := -1
	for {
		head := make([]byte, 5)
		if _, err := io.ReadFull(in, head); err != nil {
			_, _ = client.Write(reply)
			return
		}
		start := len(reply)
		size := int(binary.BigEndian.Uint32(head[1:])) - 4
		reply = append(append(reply, head...), make([]byte, size)...)
		body := reply[start+5:]
		if _, err := io.ReadFull(in, body); err != nil {
			return
		}
		switch head[0] {
		case 'C': // CommandComplete
			if c.saw(string(bytes.TrimRight(body, "\x00"))) {
				complete = start
			}
		case 'Z', 'R', 'G': // the client's turn: ReadyForQuery, Authentication, CopyIn
			if complete >= 0 {
				if cut, mine := c.take(); mine {
					_, _ = client.Write(reply[:cut.place(reply, complete, start)])
					if tcp, ok := client.(*net.TCPConn); ok && cut.reset {
						_ = tcp.SetLinger(0)
					}
					return
				}
			}
			if _, err := client.Write(reply); err != nil {
				return
			}
			reply, complete = nil, -1
		}
	}
}

// saw records a completed command, and reports whether to cut off its response.
func (c *cutter) saw(tag string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tag == "" || !strings.HasPrefix(tag, c.tag) {
		return false
	}
	if !strings.HasSuffix(tag, " 0") {
		c.landed++
	}
	return true
}

// take reports whether this reply must be cut off, and where.
func (c *cutter) take() (cut, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	armed := c.armed
	c.armed = false
	return c.cut, armed
}
