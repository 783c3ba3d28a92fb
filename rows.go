package sqlfence

import (
	"context"
	"database/sql/driver"

	"github.com/sqlfence/sqlfence/internal/basedriver"
	"github.com/sqlfence/sqlfence/internal/core"
)

// guardedRows are the rows of a guarded query, or of any in a transaction that has to be followed. The guard may refuse
// a row, and the server may end the transaction, after the query has returned.
type guardedRows struct {
	ctx       context.Context // the query's
	execution *core.Execution // nil for a query that isn't guarded
	state     *core.Conn      // of that query
	base      driver.Rows
	first     *firstRow // read ahead; nil if none is left
	failed    bool      // with any error
	refused   bool      // the refusal is reported; the rows may repeat it
}

// A firstRow is the first row of a query, read before the rows are given out, or the
// error instead of it.
type firstRow struct {
	driver.Rows // behind it
	values      []driver.Value
	err         error
}

// next reads a row.
func (r *guardedRows) next(dest []driver.Value) error {
	if first := r.first; first != nil {
		r.first = nil
		copy(dest, first.values)
		return r.Answered(first.err)
	}
	return r.Answered(r.base.Next(dest))
}

// close closes the rows. The refusal may come when the rest of them is read.
func (r *guardedRows) close() error {
	err := r.base.Close()
	if r.execution != nil {
		release(r.execution)
	}
	err = r.Answered(err)
	if err == nil && !r.failed && r.execution != nil {
		r.execution.ReportGuarded(r.ctx)
	}
	return err
}

// Answered returns the error that the application gets.
func (r *guardedRows) Answered(err error) error {
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

// failedRows are the rows of a query that failed with its first row. They hold only the
// error, which the application gets from Next.
type failedRows struct {
	columns []string
	err     error
}

// Columns implements driver.Rows.
func (r failedRows) Columns() []string { return r.columns }

// Next implements driver.Rows.
func (r failedRows) Next([]driver.Value) error { return r.err }

// Close implements driver.Rows.
func (r failedRows) Close() error { return nil }
