package basedriver

import (
	"database/sql/driver"
	"net"
	"reflect"
	"syscall"
)

// A closer reports whether the driver has closed its connection.
type closer interface{ IsClosed() bool }

// network returns the socket of a known driver's connection, which base is or wraps (with a method Raw, as otelsql
// does), and a [closer] for the connection; nil for values that can't be reached.
func network(base driver.Conn) (*socket, closer) {
	for range wrapped {
		if d, ok := Known(base); ok {
			if d.reach == nil {
				break
			}
			conn, state := d.reach(base)
			return socketOf(conn), state
		}
		if base = unwrap(base); base == nil {
			break
		}
	}
	return nil, nil
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

// reachPq returns the network connection of lib/pq's conn from its field, because there is no method; nil in a version
// without this field.
func reachPq(base driver.Conn) (net.Conn, closer) {
	v := reflect.ValueOf(base)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return nil, nil
	}
	return held(v.Elem().FieldByName("c")), nil
}

// reachDqlite returns the network connection of go-dqlite's driver.Conn, which has it in a field of a field.
func reachDqlite(base driver.Conn) (net.Conn, closer) {
	v := reflect.Indirect(reflect.ValueOf(base))
	for _, name := range []string{"protocol", "conn"} {
		if v = reflect.Indirect(v); v.Kind() != reflect.Struct {
			return nil, nil
		}
		v = v.FieldByName(name)
	}
	return held(v), nil
}

// held returns the network connection in an unexported field that is an interface.
func held(field reflect.Value) net.Conn {
	if !field.IsValid() || field.Kind() != reflect.Interface || field.Elem().Kind() != reflect.Pointer {
		return nil
	}
	conn := field.Elem()
	socket, _ := reflect.NewAt(conn.Type().Elem(), conn.UnsafePointer()).Interface().(net.Conn)
	return socket
}

// socketOf returns the socket of a network connection, with or without TLS; nil if the socket can't be reached.
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
