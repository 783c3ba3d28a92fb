package basedriver

import (
	"context"
	"database/sql/driver"
	"time"
)

// A Liveness checks whether a connection is alive without sending a statement. The zero value is for a database
// without a network, and finds every connection alive.
type Liveness struct {
	validator driver.Validator // nil if the driver has none
	pinger    driver.Pinger    // nil if the driver has none
	state     closer           // pgx's connection, else nil
	socket    *socket          // nil if the socket can't be reached
	used      time.Time        // when the connection was last known to be alive; only without a socket
}

// NewLiveness returns the liveness of a network connection, which may be inside a wrapper such as otelsql's.
func NewLiveness(base driver.Conn) Liveness {
	l := Liveness{used: time.Now()}
	l.validator, _ = base.(driver.Validator)
	l.pinger, _ = base.(driver.Pinger)
	l.socket, l.state = network(base)
	return l
}

// idleLimit is the idle time after which a connection without a reachable socket is pinged. pgx has the same limit.
const idleLimit = time.Second

// Open reports whether the driver's connection is known to be open.
func (l *Liveness) Open() bool { return l.state != nil && !l.state.IsClosed() }

// Closed reports whether the driver is known to have closed the connection.
func (l *Liveness) Closed() bool { return l.state != nil && l.state.IsClosed() }

// Invalid reports whether the driver's Validator rejects the connection, mostly as broken.
func (l *Liveness) Invalid() bool { return l.validator != nil && !l.validator.IsValid() }

// Alive reports whether the connection can be used, as far as is known. A valid connection without pending data costs
// no round trip. Unrequested data may announce that the server has closed the connection, which a Ping finds out.
func (l *Liveness) Alive(ctx context.Context) bool {
	switch pending, err := l.pending(); {
	case l.Closed() || err != nil:
		return false
	case l.Invalid():
		return l.pinger != nil && l.pinger.Ping(ctx) == nil
	case !pending:
		return true
	}
	return l.pinger == nil || l.pinger.Ping(ctx) == nil
}

// pending reports whether the socket has, or may have, unread data; an error means that the server has closed the
// connection.
func (l *Liveness) pending() (bool, error) {
	if l.socket != nil {
		return l.socket.peek()
	}
	return l.pinger != nil && time.Since(l.used) > idleLimit, nil
}

// Touch records that the connection was just used.
func (l *Liveness) Touch() {
	if l.socket == nil && l.pinger != nil {
		l.used = time.Now()
	}
}
