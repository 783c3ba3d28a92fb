package basedriver

import (
	"context"
	"database/sql/driver"
	"net"
	"reflect"
	"time"
)

// Prepared holds the statements prepared by name on a *pgx.Conn. pgx executes any string that equals a name as the
// named statement, and has no method that lists the names. The zero value has none. Like the connection, Prepared is
// used by one goroutine at a time.
type Prepared struct {
	statements reflect.Value
	name       *string       // the name to look up: kept, so that a lookup allocates nothing
	key        reflect.Value // the value that name points to
}

// PreparedOn returns the prepared statements of a *pgx.Conn; ok is false if this version of pgx has no such field.
func PreparedOn(conn any) (p Prepared, ok bool) {
	v := reflect.ValueOf(conn)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return p, false
	}
	field := v.Elem().FieldByName("preparedStatements")
	if !field.IsValid() || field.Kind() != reflect.Map || field.Type().Key() != stringType {
		return p, false
	}
	described := field.Type().Elem()
	if described.Kind() != reflect.Pointer || described.Elem().Kind() != reflect.Struct {
		return p, false
	}
	if f, ok := described.Elem().FieldByName("SQL"); !ok || f.Type != stringType {
		return p, false
	}
	name := new(string)
	return Prepared{field, name, reflect.ValueOf(name).Elem()}, true
}

// Prepared returns the prepared statements of pgx's connection under database/sql; none for other drivers.
func (l *Liveness) Prepared() Prepared {
	p, _ := PreparedOn(l.state)
	return p
}

// None reports whether no statement is prepared by name.
func (p Prepared) None() bool { return !p.statements.IsValid() || p.statements.Len() == 0 }

// Text returns the text of the statement that pgx runs for a name, if there is one.
func (p Prepared) Text(name string) (text string, ok bool) {
	if p.None() {
		return "", false
	}
	*p.name = name
	s := p.statements.MapIndex(p.key)
	*p.name = ""
	if s.IsValid() && !s.IsNil() {
		return s.Elem().FieldByName("SQL").String(), true
	}
	return "", false
}

// A Ping checks with the server whether a connection is alive.
type Ping func(ctx context.Context) error

// Ping implements driver.Pinger.
func (p Ping) Ping(ctx context.Context) error { return p(ctx) }

// LivenessOf returns the liveness of a connection without database/sql. state reports whether the connection is
// closed, and ping checks with the server.
func LivenessOf(conn net.Conn, state interface{ IsClosed() bool }, ping Ping) Liveness {
	return Liveness{pinger: driver.Pinger(ping), state: state, socket: socketOf(conn), used: time.Now()}
}
