package sqlfence_test

import (
	"context"
	"database/sql/driver"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

type rawWrapper struct{ driver.Conn }

func (w rawWrapper) Raw() driver.Conn { return w.Conn }

func TestBaseConn(t *testing.T) {
	var events []sqlfence.EventKind
	db := open(t, &fakedb.Recorder{}, sqlfence.WithTable("books", fenced),
		sqlfence.WithObserver(func(_ context.Context, e sqlfence.Event) { events = append(events, e.Kind) }))
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	err = conn.Raw(func(c any) error {
		if _, ok := c.(*fakedb.RecorderConn); ok {
			t.Error("the connection isn't fenced")
		}
		if _, ok := sqlfence.BaseConn(c).(*fakedb.RecorderConn); !ok {
			t.Errorf("the base connection is %T", sqlfence.BaseConn(c))
		}
		if len(events) != 1 || events[0] != sqlfence.RawAccess {
			t.Errorf("events %v, want one RawAccess", events)
		}
		if _, ok := sqlfence.BaseConn(rawWrapper{c.(driver.Conn)}).(*fakedb.RecorderConn); !ok {
			t.Error("the base connection isn't found behind a wrapper")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	bare := &fakedb.RecorderConn{}
	for _, c := range []any{nil, 7, bare, rawWrapper{nil}} {
		if got := sqlfence.BaseConn(c); got != c {
			t.Errorf("BaseConn(%T) = %T", c, got)
		}
	}
	if len(events) != 2 {
		t.Errorf("events %v", events)
	}
}
