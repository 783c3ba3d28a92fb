package core_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

type emptyWrapper struct{ driver.Conn }

func (emptyWrapper) Raw() driver.Conn { return nil }

// A wrapper may have no underlying connection.
func TestWrapperWithoutAConnection(t *testing.T) {
	base := &fakedb.Recorder{Form: func(c *fakedb.RecorderConn) driver.Conn { return emptyWrapper{c} }}
	if err := openPostgres(t, base, sqlfence.WithTable("books", fenced)).Ping(); err != nil {
		t.Error(err)
	}
}

type hangingConn struct {
	*fakedb.RecorderConn
	ping func(context.Context) error
}

func (c hangingConn) Ping(ctx context.Context) error { return c.ping(ctx) }

// If the context ends during the connection's check, the context's error is returned, and the connection is kept.
func TestContextEndsWhileTheConnectionIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := true
		base := &fakedb.Recorder{Form: func(c *fakedb.RecorderConn) driver.Conn {
			return hangingConn{c, func(ctx context.Context) error {
				if hangs {
					<-ctx.Done()
				}
				return ctx.Err()
			}}
		}}
		db := openPostgres(t, base, sqlfence.WithTable("books", fenced))
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		ctx, cancel := context.WithTimeout(with(t.Context(), 7), time.Second)
		defer cancel()
		if _, err := conn.ExecContext(ctx, outcomeWrite); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, sqlfence.ErrUnknownOutcome) {
			t.Errorf("%v, want the context's error", err)
		}
		base.WantSent(t)
		hangs = false
		if _, err := conn.ExecContext(with(t.Context(), 7), outcomeWrite); err != nil {
			t.Errorf("then: %v", err)
		}
		conn.Close()
		db.Close()
	})
}

// After a write of unknown outcome no transaction begins on the connection either, because its commit would be refused.
func TestNoTransactionOnALostConnection(t *testing.T) {
	fails := true
	base := &fakedb.Recorder{Fails: func(string) error {
		if fails {
			fails = false
			return driver.ErrBadConn
		}
		return nil
	}}
	db := openPostgres(t, base, sqlfence.WithTable("books", fenced))
	db.SetMaxOpenConns(1)
	_, err := db.ExecContext(with(t.Context(), 7), outcomeWrite)
	wantOutcome(t, err, driver.ErrBadConn, true, true)
	if err := inTx(t, db, func() {}); err != nil {
		t.Errorf("a transaction after it: %v", err)
	}
}
