package basedriver

import (
	"context"
	"database/sql/driver"
	"reflect"
)

// Notifications returns a function that waits for the next notification of a pgx connection, and returns its channel
// and payload; nil for drivers that can't wait for notifications.
func Notifications(base driver.Conn) func(context.Context) (channel, payload string, err error) {
	conn, ok := connOf(base, ofPgx)
	if !ok {
		return nil
	}
	wait := conn.MethodByName("WaitForNotification")
	if !wait.IsValid() || wait.Type().String() != "func(context.Context) (*pgconn.Notification, error)" {
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
