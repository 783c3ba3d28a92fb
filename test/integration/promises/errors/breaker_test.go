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

// A fault is what a breaker does to a client's message.
type fault int

const (
	noFault      fault = iota
	dropRequest        // closed before the server gets the message
	dropReply          // closed after the server has answered, without the answer
	dropBoth           // closed while the server executes the message
	cancelBefore       // the context ends, then the server receives the message
	cancelAfter        // the context ends when the server has answered, and the client gets the answer then
	closeIdle          // closed after the client has got the answer
	faults
)

// A job is a write that a breaker waits for. The breaker recognises the write by a word in its text.
type job struct {
	fault  fault
	commit bool   // applies to the COMMIT after the write
	cancel func() // ends the write's context
	sent   bool   // the client has sent the write, or the COMMIT after it
}

// A breaker is a proxy for PostgreSQL, with a fault for each job.
type breaker struct {
	dsn string

	mu   sync.Mutex
	jobs map[string]*job
	cold int // how many closed connections were used again, for a statement whose word hasn't come yet
}

var (
	word      = regexp.MustCompile(`job[0-9]+x`)
	committed = regexp.MustCompile(`(?i)Q....commit`)
	ready     = []byte("Z\x00\x00\x00\x05") // and a byte with the transaction's state: the server has answered
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

// expect makes the breaker wait for a job.
func (b *breaker) expect(word string, j *job) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.jobs[word] = j
}

// wasSent reports whether the client has sent a part of the job. If arguments are sent after the statement, a message
// on a closed connection may be the job's although its word never came.
func (b *breaker) wasSent(word string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.jobs[word].sent {
		return true
	}
	b.cold--
	return b.cold >= 0
}

// usedCold records that a closed connection was used again.
func (b *breaker) usedCold() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cold++
}

// A broken is a connection through a breaker.
type broken struct {
	*breaker
	client *net.TCPConn
	server net.Conn
	inside *job // the job whose COMMIT hasn't come yet

	closing sync.Mutex
	closed  bool // to the client; its further messages are discarded
	after   *job // whose response is awaited
}

// requests forwards the client's messages. requests reads on after it has stopped forwarding, because for a client a
// message is sent once it is written to the socket.
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

// met returns the job whose fault must happen at this message; nil for none.
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

// replies forwards the server's answers, each as a whole.
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
