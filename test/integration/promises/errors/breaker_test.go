package errors_test

import (
	"bytes"
	"io"
	"net"
	"regexp"
	"sync"
	"testing"

	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A fault is what a breaker does to a message of the client's.
type fault int

const (
	noFault      fault = iota
	dropRequest        // closed before the server gets it
	dropReply          // closed when the server has answered, and the answer dropped
	dropBoth           // closed while the server works on it
	cancelBefore       // the context ends, then the server receives the message
	cancelAfter        // the context ends when the server has answered, then the answer is passed on
	closeIdle          // closed when the answer has been passed on
	faults
)

// A job is a write that a breaker waits for. The breaker recognises the write by a word in its text.
type job struct {
	fault  fault
	commit bool   // applies to the COMMIT after the write
	cancel func() // ends its context
	sent   bool   // the client has sent the write, or the COMMIT after it
}

// A breaker stands before PostgreSQL and has a fault for each job.
type breaker struct {
	dsn string

	mu   sync.Mutex
	jobs map[string]*job
	cold int // how many connections were used once more after they were closed, for a statement without its word yet
}

var (
	word      = regexp.MustCompile(`job[0-9]+x`)
	committed = regexp.MustCompile(`(?i)Q....commit`)
	ready     = []byte("Z\x00\x00\x00\x05") // and one byte: the server has answered
)

func newBreaker(t *testing.T, dsn string) *breaker {
	t.Helper()
	b := &breaker{jobs: make(map[string]*job)}
	b.dsn = harness.Relay(t, dsn, func(client, server net.Conn) {
		c := &broken{breaker: b, client: client.(*net.TCPConn), server: server}
		go c.replies()
		c.requests()
	})
	return b
}

// expect has the breaker wait for a job.
func (b *breaker) expect(word string, j *job) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.jobs[word] = j
}

// wasSent reports whether the client has sent something of the job. Where arguments
// are sent after the statement it may be that whose word never came.
func (b *breaker) wasSent(word string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.jobs[word].sent {
		return true
	}
	b.cold--
	return b.cold >= 0
}

// usedCold notes that a connection was used once more.
func (b *breaker) usedCold() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cold++
}

// A broken is one connection through a breaker.
type broken struct {
	*breaker
	client *net.TCPConn
	server net.Conn
	inside *job // whose COMMIT is to come

	closing sync.Mutex
	closed  bool // to the client; its further messages are discarded
	after   *job // whose response is awaited
}

// requests passes on what the client sends. It reads to the end also when nothing is
// passed on any more: what was written to the socket was sent.
func (c *broken) requests() {
	defer c.server.Close()
	defer c.client.Close()
	buf := make([]byte, 64<<10)
	used := false
	for {
		n, err := c.client.Read(buf)
		if err != nil {
			return
		}
		j := c.met(buf[:n])
		if j == nil {
			switch {
			case !c.isClosed():
				_, _ = c.server.Write(buf[:n])
			case !used && buf[0] != 'X': // not a Terminate message
				used = true
				c.usedCold()
			}
			continue
		}
		switch j.fault {
		case dropRequest:
			c.close()
		case cancelBefore:
			j.cancel()
		}
		c.closing.Lock()
		c.after = j
		c.closing.Unlock()
		if !c.isClosed() {
			_, _ = c.server.Write(buf[:n])
		}
		if j.fault == dropBoth {
			c.close()
		}
	}
}

// met returns the job whose fault it is time for; nil for none.
func (c *broken) met(message []byte) *job {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inside != nil && committed.Match(message) {
		j := c.inside
		j.sent, c.inside = true, nil
		return j
	}
	j := c.jobs[string(word.Find(message))]
	switch {
	case j == nil:
		return nil
	case j.commit:
		c.inside = j
		return nil
	}
	j.sent = true
	return j
}

// replies passes on what the server answers, each answer whole.
func (c *broken) replies() {
	var reply []byte
	buf := make([]byte, 64<<10)
	for {
		n, err := c.server.Read(buf)
		reply = append(reply, buf[:n]...)
		if err != nil {
			if err == io.EOF && !c.isClosed() {
				_, _ = c.client.Write(reply)
			}
			c.close()
			return
		}
		c.closing.Lock()
		j := c.after
		c.closing.Unlock()
		if j != nil {
			if len(reply) < 6 || !bytes.HasPrefix(reply[len(reply)-6:], ready) {
				continue
			}
			switch j.fault {
			case dropReply:
				c.close()
			case cancelAfter:
				j.cancel()
			}
			c.closing.Lock()
			c.after = nil
			c.closing.Unlock()
		}
		if !c.isClosed() {
			_, _ = c.client.Write(reply)
		}
		reply = nil
		if j != nil && j.fault == closeIdle {
			c.close()
		}
	}
}

func (c *broken) isClosed() bool {
	c.closing.Lock()
	defer c.closing.Unlock()
	return c.closed
}

// close closes the client's side, so that the client receives nothing more.
func (c *broken) close() {
	c.closing.Lock()
	defer c.closing.Unlock()
	c.closed = true
	_ = c.client.CloseWrite()
}
