package basedriver

import (
	"context"
	"database/sql/driver"
	"reflect"
)

// Notifications returns a function that waits for the next notification of a pgx connection, and returns its channel
// and payload; nil for drivers that can't wait for notifications.
func Notifications(base driver.Conn) func(context.Context) (channel, payload string, err error) {
	for range wrapped {
		if m := reflect.ValueOf(base).MethodByName("Conn"); isGetter(m) && ofPgx(m.Type().Out(0)) {
			return notificationsOf(m.Call(nil)[0].MethodByName("WaitForNotification"))
		}
		if base = unwrap(base); base == nil {
			break
		}
	}
	return nil
}

func notificationsOf(wait reflect.Value) func(context.Context) (channel, payload string, err error) {
	if !wait.IsValid() || !isWait(wait.Type()) {
		return nil
	}
	return func(ctx context.Context) (channel, payload string, err error) {
		out := wait.Call([]reflect.Value{reflect.ValueOf(ctx)})
		if err, _ := out[1].Interface().(error); err != nil {
			return "", "", err
		}
		n := out[0].Elem()
		return n.FieldByName("Channel").String(), n.FieldByName("Payload").String(), nil
	}
}

// isWait reports whether a method is func(context.Context) (*pgconn.Notification, error).
func isWait(m reflect.Type) bool {
	if m.NumIn() != 1 || m.In(0) != contextType || m.NumOut() != 2 || m.Out(1) != errorType ||
		m.Out(0).Kind() != reflect.Pointer || m.Out(0).Elem().Kind() != reflect.Struct {
		return false
	}
	for _, name := range []string{"Channel", "Payload"} {
		if f, ok := m.Out(0).Elem().FieldByName(name); !ok || f.Type != stringType {
			return false
		}
	}
	return true
}
