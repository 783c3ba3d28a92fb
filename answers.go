package sqlfence

import (
	"database/sql/driver"
	"fmt"
	"reflect"
	"sync/atomic"
)

// answersPq returns what tells whether a connection of lib/pq's is in the middle of an
// answer. On one with open rows a text fails with an error of lib/pq's, but a prepared
// statement would mix up the protocol. lib/pq has only a field that says so.
func answersPq(base driver.Conn) func() bool {
	v := reflect.ValueOf(base)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return nil
	}
	field := v.Elem().FieldByName("inProgress")
	if !field.IsValid() || field.Type() != reflect.TypeFor[atomic.Bool]() {
		return nil
	}
	return (*atomic.Bool)(field.Addr().UnsafePointer()).Load
}

// answersPgx does the same for pgx's stdlib.Conn. In the modes exec and simple protocol pgx
// prepares nothing, and encodes arguments by their own types instead of the columns'.
func answersPgx(base driver.Conn) func() bool {
	method := reflect.ValueOf(base).MethodByName("Conn")
	if !isGetter(method) {
		return nil
	}
	conn := method.Call(nil)[0]
	config, server := conn.MethodByName("Config"), conn.MethodByName("PgConn")
	if !isGetter(config) || !isGetter(server) {
		return nil
	}
	mode := reflect.Indirect(config.Call(nil)[0]).FieldByName("DefaultQueryExecMode")
	if !mode.IsValid() {
		return nil
	}
	switch fmt.Sprint(mode) {
	case "cache statement", "cache describe", "describe exec":
	default:
		return nil
	}
	busy, ok := server.Call(nil)[0].Interface().(interface{ IsBusy() bool })
	if !ok {
		return nil
	}
	return busy.IsBusy
}
