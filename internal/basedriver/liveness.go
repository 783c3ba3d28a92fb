package basedriver

import (
	"context"
	"database/sql/driver"
	"time"
)

// A Liveness is what can be found out about a connection without sending a statement
// on it. The zero value is for a database without a network, and knows nothing.
type Liveness struct {
	validator driver.Validator // nil if the driver has none
	pinger    driver.Pinger    // nil if the driver has none
	state     closer           // pgx's connection, else nil
	socket    *socket          // nil if it can't be reached
	used      time.Time        // when it was last known to be alive; only without a socket
}

// NewLiveness returns the liveness of a connection over a network, also of one behind a
// wrapper such as otelsql's.
func NewLiveness(base driver.Conn) Liveness {
	l := Liveness{used: time.Now()}
	l.validator, _ = base.(driver.Validator)
	l.pinger, _ = base.(driver.Pinger)
	l.socket, l.state = network(base)
	return l
}

// idleLimit is how long a connection may be idle before a Ping asks it, if its socket can't be
// reached. pgx takes the same.
const idleLimit = time.Second

// Open reports whether the driver is known to have a connection still.
func (l *Liveness) Open() bool { return l.state != nil && !l.state.IsClosed() }

// Closed reports whether the driver is known to have closed the connection.
func (l *Liveness) Closed() bool { return l.state != nil && l.state.IsClosed() }

// Invalid reports whether the driver's Validator rejects the connection, usually because it is
// broken.
func (l *Liveness) Invalid() bool { return l.validator != nil && !l.validator.IsValid() }

// Alive reports whether the connection can be used, as far as is known. It costs no
// round trip on a valid connection on which nothing has come in; what has, unasked, may be
// the server's last words, and a Ping shows whether it is.
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

// pending reports whether something has come in on the socket, or might have, as far as
// is known; an error says that the other side has closed it.
func (l *Liveness) pending() (bool, error) {
	if l.socket != nil {
		return l.socket.peek()
	}
	return l.pinger != nil && time.Since(l.used) > idleLimit, nil
}

// Touch notes that the connection has served.
func (l *Liveness) Touch() {
	if l.socket == nil && l.pinger != nil {
		l.used = time.Now()
	}
}
