package sqlfence

import (
	"context"
	"database/sql/driver"

	"github.com/sqlfence/sqlfence/internal/basedriver"
	"github.com/sqlfence/sqlfence/internal/core"
)

// guardedRows are the rows of a guarded query, or of any query in a transaction of guarded writes that an error among
// the rows may end. After the query has returned, the guard may still refuse a row.
type guardedRows struct {
	ctx       context.Context // the query's
	execution *core.Execution // nil for a query that isn't guarded
	state     *core.Conn      // the connection's state, if the query isn't guarded
	base      driver.Rows
	stmt      *stmt     // the application's prepared statement; nil without one, or if it has only one form
	first     *firstRow // read ahead; nil if none is left
	failed    bool      // with any error
	refused   bool      // the refusal is reported; the rows may repeat it
}

// A firstRow is the first row of a query, or its error, read before the application gets the rows.
type firstRow struct {
	driver.Rows // the rows after the first
	values      []driver.Value
	err         error
}

// next reads a row.
func (r *guardedRows) next(dest []driver.Value) error {
	if first := r.first; first != nil {
		r.first = nil
		copy(dest, first.values)
		return r.ConvertError(first.err)
	}
	return r.ConvertError(r.base.Next(dest))
}

// close closes the rows. The driver then reads the remaining rows, and may get a refusal.
func (r *guardedRows) close() error {
	err := r.base.Close()
	r.stmt.closeRows()
	if r.execution != nil {
		release(r.execution)
	}
	err = r.ConvertError(err)
	if err == nil && !r.failed && r.execution != nil {
		r.execution.ReportGuarded(r.ctx)
	}
	return err
}

// ConvertError returns the error that the application gets.
func (r *guardedRows) ConvertError(err error) error {
	if err == nil || basedriver.IsEnd(err) {
		return err
	}
	if r.execution == nil {
		r.state.FollowRollback(err)
		return err
	}
	r.failed = true
	err, r.refused = r.execution.RowError(r.ctx, err, r.refused)
	return err
}

// failedRows are the rows of a query that failed at its first row. Next returns the error.
type failedRows struct {
	columns []string
	err     error
}

func (r failedRows) Columns() []string { return r.columns }

func (r failedRows) Next([]driver.Value) error { return r.err }

func (r failedRows) Close() error { return nil }
