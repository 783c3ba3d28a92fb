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
	"github.com/sqlfence/sqlfence/internal/fakedb"
	"github.com/sqlfence/sqlfence/internal/stop"
)

// mysqlError has the form of a server's error.
type mysqlError struct {
	Number  uint16
	Message string
}

func (e *mysqlError) Error() string { return e.Message }

// The server is told to end a statement only if the server hasn't answered. The error stays unchanged.
func TestAbandoned(t *testing.T) {
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
				fake := fakedb.New(fakedb.Script(fakedb.Answer{Rows: [][]any{{int64(7)}}}, fakedb.Answer{}, fakedb.Answer{}, fakedb.Answer{}))
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
				synctest.Wait()
				var want []string
				if test.stops {
					want = []string{
						"BEGIN", "SELECT MAX(id) FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND LOCATE(_utf8mb4'" + mark + "', info) > 0",
						"PREPARE sqlfence_stop FROM 'KILL QUERY 7'", "EXECUTE sqlfence_stop", "DEALLOCATE PREPARE sqlfence_stop", "ROLLBACK",
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

// The caller waits neither for a connection nor for an unreachable server. The abandoned statement is ended when a
// connection is free, perhaps the one of the caller's own transaction.
func TestAbandonedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := fakedb.New(fakedb.Script(fakedb.Answer{Rows: [][]any{{int64(7)}}}, fakedb.Answer{}, fakedb.Answer{}, fakedb.Answer{}))
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
		synctest.Wait()
		if sent := fmt.Sprint(fake.Sent()); !strings.Contains(sent, "KILL QUERY 7") {
			t.Errorf("sent %s", sent)
		}
	})
}
