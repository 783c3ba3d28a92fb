package sqlfence

import (
	"context"
	"database/sql/driver"
	"net"
	"reflect"
	"syscall"
	"time"
)

// A link is what can be found out about a base connection without sending a statement
// on it. The zero value is for a database without a network, and knows nothing.
type link struct {
	validator driver.Validator // nil if the base has none
	pinger    driver.Pinger    // nil if the base has none
	state     closer           // pgx's connection, else nil
	socket    *socket          // nil if it can't be reached
	used      time.Time        // when it was last known to be alive; only without a socket
}

type closer interface{ IsClosed() bool }

// idleLimit is how long a connection whose socket can't be reached may be idle until
// it is asked with a Ping. pgx takes the same.
const idleLimit = time.Second

// newLink returns the link of a base connection, also of one behind a wrapper such as
// otelsql's.
func newLink(db database, base driver.Conn) link {
	if !db.remote() {
		return link{}
	}
	l := link{used: time.Now()}
	l.validator, _ = base.(driver.Validator)
	l.pinger, _ = base.(driver.Pinger)
	if conn, p, _ := driverConn(base); p.reach != nil {
		var socket net.Conn
		socket, l.state = p.reach(conn)
		l.socket = socketOf(socket)
	}
	return l
}

// driverConn returns the connection of a known driver's that base is, which is direct, or
// wraps by a method Raw, as otelsql's does; nil if there is none.
func driverConn(base driver.Conn) (conn driver.Conn, p profile, direct bool) {
	for i := range 8 {
		if p, ok := profiles[packageOf(reflect.TypeOf(base))]; ok {
			return base, p, i == 0
		}
		wrapper, ok := base.(interface{ Raw() driver.Conn })
		if !ok {
			break
		}
		if base = wrapper.Raw(); base == nil {
			break
		}
	}
	return nil, profile{}, false
}

// open reports whether the base driver is known to have a connection still.
func (l *link) open() bool { return l.state != nil && !l.state.IsClosed() }

// closed reports whether the base driver is known to have closed the connection.
func (l *link) closed() bool { return l.state != nil && l.state.IsClosed() }

// invalid reports whether the base driver says that the connection isn't for the pool:
// mostly as it is lost.
func (l *link) invalid() bool { return l.validator != nil && !l.validator.IsValid() }

// alive reports whether the connection can be used, as far as is known. It costs no
// round trip on a valid connection on which nothing has come in; what has, unasked, may be
// the server's last words, and a Ping shows whether it is.
func (l *link) alive(ctx context.Context) bool {
	switch pending, err := l.pending(); {
	case l.closed() || err != nil:
		return false
	case l.invalid():
		return l.pinger != nil && l.pinger.Ping(ctx) == nil
	case !pending:
		return true
	}
	return l.pinger == nil || l.pinger.Ping(ctx) == nil
}

// pending reports whether something has come in on the socket, or might have, as far as
// is known; an error says that the other side has closed it.
func (l *link) pending() (bool, error) {
	if l.socket != nil {
		return l.socket.peek()
	}
	return l.pinger != nil && time.Since(l.used) > idleLimit, nil
}

// touch notes that the connection has served.
func (l *link) touch() {
	if l.socket == nil && l.pinger != nil {
		l.used = time.Now()
	}
}

// reachPgx returns the network connection of pgx's stdlib.Conn.
func reachPgx(base driver.Conn) (net.Conn, closer) {
	method := reflect.ValueOf(base).MethodByName("Conn")
	if !isGetter(method) {
		return nil, nil
	}
	conn := method.Call(nil)[0]
	state, _ := conn.Interface().(closer)
	if method = conn.MethodByName("PgConn"); !isGetter(method) {
		return nil, state
	}
	if method = method.Call(nil)[0].MethodByName("Conn"); !isGetter(method) {
		return nil, state
	}
	socket, _ := method.Call(nil)[0].Interface().(net.Conn)
	return socket, state
}

func isGetter(method reflect.Value) bool {
	return method.IsValid() && method.Type().NumIn() == 0 && method.Type().NumOut() == 1
}

// reachPq returns the network connection of lib/pq's conn. It has no method for that,
// only a field; in a version without this field there is none.
func reachPq(base driver.Conn) (net.Conn, closer) {
	v := reflect.ValueOf(base)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return nil, nil
	}
	field := v.Elem().FieldByName("c")
	if !field.IsValid() || field.Kind() != reflect.Interface || field.Elem().Kind() != reflect.Pointer {
		return nil, nil
	}
	held := field.Elem()
	socket, _ := reflect.NewAt(held.Type().Elem(), held.UnsafePointer()).Interface().(net.Conn)
	return socket, nil
}

// socketOf returns the socket of a network connection, also of one with TLS; nil if
// it can't be reached.
func socketOf(conn net.Conn) *socket {
	if wrapper, ok := conn.(interface{ NetConn() net.Conn }); ok { // as *tls.Conn
		conn = wrapper.NetConn()
	}
	c, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return nil
	}
	return newSocket(raw)
}
