package basedriver

import (
	"context"
	"database/sql/driver"
	"net"
	"reflect"
	"time"
)

// Prepared are the statements that were prepared by name on a *pgx.Conn. pgx runs a text that is such a name as that
// statement, whichever text it is, and has no method that tells them. The zero value has none. Like the connection,
// only one goroutine at a time uses it.
type Prepared struct {
	statements reflect.Value
	name       *string       // that is looked up: kept, so that a look allocates nothing
	key        reflect.Value // what name points to
}

// PreparedOn returns those of a *pgx.Conn; ok is false if this version of pgx keeps them elsewhere.
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

// Prepared returns those that were prepared on pgx's connection beneath database/sql; none of another driver's.
func (l *Liveness) Prepared() Prepared {
	p, _ := PreparedOn(l.state)
	return p
}

// None reports whether there is none.
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

// A Ping asks the server whether a connection is alive.
type Ping func(ctx context.Context) error

// Ping implements driver.Pinger.
func (p Ping) Ping(ctx context.Context) error { return p(ctx) }

// LivenessOf returns the liveness of a connection apart from database/sql, with its socket, what tells whether it is
// closed, and what asks the server.
func LivenessOf(conn net.Conn, state interface{ IsClosed() bool }, ping Ping) Liveness {
	return Liveness{pinger: driver.Pinger(ping), state: state, socket: socketOf(conn), used: time.Now()}
}
