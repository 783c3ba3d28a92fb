package lease_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
	"github.com/sqlfence/sqlfence/lease"
)

// mysqlError has the form of a server's error.
type mysqlError struct {
	Number  uint16
	Message string
}

func (e *mysqlError) Error() string { return e.Message }

// MySQL's variables show whether a statement is safe outside of a transaction. On a server without such a variable
// Extend runs in a transaction.
func TestMySQLWithoutTheVariable(t *testing.T) {
	var sent []fakedb.Kind
	fake := fakedb.New(func(_ context.Context, c fakedb.Call) (fakedb.Response, error) {
		sent = append(sent, c.Kind)
		switch {
		case len(sent) == 1:
			return fakedb.Response{}, &mysqlError{1193, "Unknown system variable 'binlog_format'"}
		case c.Kind == fakedb.Query:
			return fakedb.Response{Rows: [][]any{{int64(60e6), int64(60e6)}}}, nil
		}
		return fakedb.Response{}, nil
	})
	db := sql.OpenDB(fake)
	defer db.Close()
	leases, err := lease.New(db, lease.WithDialect(sqlfence.MySQL))
	if err != nil {
		t.Fatal(err)
	}
	until, err := leases.Extend(t.Context(), "0123456789012345678901", time.Minute)
	if err != nil || !until.Equal(time.Unix(60, 0)) {
		t.Errorf("Extend: %v, %v", until, err)
	}
	if last := sent[len(sent)-1]; last != fakedb.Commit {
		t.Errorf("sent %v, want a transaction", sent)
	}
}
