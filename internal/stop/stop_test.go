package stop_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlfence/sqlfence/internal/cleanup"
	"github.com/sqlfence/sqlfence/internal/stop"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

// mysqlError has the form of a server's error.
type mysqlError struct {
	Number  uint16
	Message string
}

func (e *mysqlError) Error() string { return e.Message }

// The server is told to end a statement only if the server hasn't answered. The error stays unchanged.
func TestAbandonedStatementIsEnded(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	for name, test := range map[string]struct {
		ctx   context.Context
		err   error
		stops bool
	}{
		"answered":       {t.Context(), nil, false},
		"answered late":  {ended, nil, false},
		"given up":       {ended, context.Canceled, true},
		"cut off":        {t.Context(), errors.New("invalid connection"), true},
		"no answer yet":  {t.Context(), &net.OpError{Op: "read", Err: errors.New("timeout")}, true},
		"cut off, said":  {t.Context(), fmt.Errorf("the lease: %w", errors.New("invalid connection")), true},
		"cut off, both":  {t.Context(), errors.Join(errors.New("unknown outcome"), errors.New("invalid connection")), true},
		"closed":         {t.Context(), io.ErrUnexpectedEOF, true},
		"not understood": {t.Context(), errors.New(`sql: Scan error on column index 6, name "x"`), false},
		"refused":        {t.Context(), &mysqlError{1205, "Lock wait timeout exceeded"}, false},
		"no rows":        {t.Context(), sql.ErrNoRows, false},
		"not sent":       {t.Context(), driver.ErrBadConn, false},
		"not sent, why":  {t.Context(), errors.Join(driver.ErrBadConn, io.EOF), false},
		"no server":      {t.Context(), &net.OpError{Op: "dial", Err: errors.New("connection refused")}, false},
		"refused, ended": {ended, &mysqlError{1317, "Query execution was interrupted"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake := fakedb.New(fakedb.Script(found(int64(7)), fakedb.Response{}, fakedb.Response{}, fakedb.Response{}, found(nil)))
				db := sql.OpenDB(fake)
				defer db.Close()
				var mark string
				err := stop.Abandoned(test.ctx, cleanup.New(db), "UPDATE t", func(text string) error {
					mark = strings.TrimSuffix(strings.TrimPrefix(text, "UPDATE t /* "), " */")
					return test.err
				})
				if !errors.Is(err, test.err) {
					t.Errorf("%v, want %v", err, test.err)
				}
				time.Sleep(time.Minute)
				var want []string
				if test.stops {
					find := "SELECT MAX(id) FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND LOCATE(_utf8mb4'" + mark + "', info) > 0 LIMIT 1"
					want = []string{
						"BEGIN", find, "PREPARE sqlfence_stop FROM 'KILL QUERY 7'", "EXECUTE sqlfence_stop",
						"DEALLOCATE PREPARE sqlfence_stop", "ROLLBACK", "BEGIN", find, "ROLLBACK",
					}
				}
				var sent []string
				for _, c := range fake.Sent() {
					sent = append(sent, fmt.Sprint(c))
				}
				if !slices.Equal(sent, want) {
					t.Errorf("sent %q, want %q", sent, want)
				}
			})
		})
	}
}

// found is the answer to the search for the statement: the session's number, or nil.
func found(session any) fakedb.Response { return fakedb.Response{Rows: [][]any{{session}}} }

// The statement is looked for twice, because the server may begin it after the first look, and until it is gone after a
// KILL, because a KILL may not reach it.
func TestAbandonedIsLookedForAgain(t *testing.T) {
	for name, test := range map[string]struct {
		finds []any // the last one again and again
		kills int
	}{
		"gone after the KILL":  {[]any{int64(7), nil}, 1},
		"begun after a look":   {[]any{nil, int64(7), nil}, 1},
		"killed twice":         {[]any{int64(7), int64(7), nil}, 2},
		"ended before":         {[]any{nil, nil, int64(7)}, 0},
		"stays, and is let be": {[]any{int64(7)}, 6},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				finds, kills := test.finds, 0
				db := sql.OpenDB(fakedb.New(func(_ context.Context, c fakedb.Call) (fakedb.Response, error) {
					switch {
					case c.Kind == fakedb.Query:
						at := finds[0]
						finds = finds[min(1, len(finds)-1):]
						return found(at), nil
					case strings.Contains(c.Query, "KILL"):
						kills++
					}
					return fakedb.Response{}, nil
				}))
				defer db.Close()
				_ = stop.Abandoned(t.Context(), cleanup.New(db), "UPDATE t", func(string) error { return io.EOF })
				time.Sleep(time.Minute)
				synctest.Wait() // so that the count is complete
				if kills != test.kills {
					t.Errorf("%d times a KILL, want %d", kills, test.kills)
				}
			})
		})
	}
}

// The caller waits neither for a connection nor for an unreachable server. The abandoned statement is ended when a
// connection is free, perhaps the one of the caller's own transaction.
func TestAbandonedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := fakedb.New(fakedb.Script(found(int64(7)), fakedb.Response{}, fakedb.Response{}, fakedb.Response{}, found(nil)))
		db := sql.OpenDB(fake)
		defer db.Close()
		db.SetMaxOpenConns(1)
		own, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		start := time.Now()
		err = stop.Abandoned(ctx, cleanup.New(db), "UPDATE t", func(string) error { return ctx.Err() })
		if !errors.Is(err, context.Canceled) || time.Since(start) > 0 {
			t.Errorf("%v after %v, want the context's error at once", err, time.Since(start))
		}
		if err := own.Rollback(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if sent := fmt.Sprint(fake.Sent()); !strings.Contains(sent, "KILL QUERY 7") {
			t.Errorf("sent %s", sent)
		}
	})
}
