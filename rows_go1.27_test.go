//go:build go1.27

package sqlfence_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

// scanningConn returns rows that scan their columns themselves.
type scanningConn struct{ *fakedb.RecorderConn }

func (c scanningConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.RecorderConn.QueryContext(ctx, query, args)
	return &scanningRows{Rows: rows}, err
}

type scanningRows struct {
	driver.Rows
	read int
}

func (r *scanningRows) NextRow() error {
	if r.read++; r.read > 1 {
		return io.EOF
	}
	return r.Next(make([]driver.Value, len(r.Columns())))
}

func (r *scanningRows) ScanColumn(_ driver.ScanContext, _ int, dest any) error {
	*dest.(*string) = "scanned by the driver"
	return nil
}

func TestRowsScanTheirColumns(t *testing.T) {
	base := &fakedb.Recorder{Form: func(c *fakedb.RecorderConn) driver.Conn { return scanningConn{c} }}
	db := open(t, base, sqlfence.WithTable("books", fenced))
	ctx := sqlfence.WithFence(t.Context(), token("books", 7))
	for _, query := range []string{"SELECT 1", "UPDATE books SET price = 1 RETURNING id"} {
		var s string
		if err := db.QueryRowContext(ctx, query).Scan(&s); err != nil || s != "scanned by the driver" {
			t.Errorf("%s: %q, %v", query, s, err)
		}
	}
	base.FailsNext = fakedb.ErrStaleAt9
	err := db.QueryRowContext(ctx, "UPDATE books SET price = 1 RETURNING id").Scan(new(string))
	if !errors.Is(err, sqlfence.ErrStale) {
		t.Errorf("stale at the first row: %v", err)
	}
}
