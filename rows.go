package sqlfence

import (
	"context"
	"database/sql/driver"

	"github.com/sqlfence/sqlfence/internal/basedriver"
	"github.com/sqlfence/sqlfence/internal/session"
)

// guardedRows are the rows of a guarded query. The guard may refuse a row after the
// query has returned.
type guardedRows struct {
	ctx       context.Context // the query's
	execution *execution
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
	r.execution.release()
	err = r.Answered(err)
	if err == nil && !r.failed {
		r.execution.reportGuarded(r.ctx)
	}
	return err
}

// Answered returns the error that the application gets.
func (r *guardedRows) Answered(err error) error {
	if err == nil || basedriver.IsEnd(err) {
		return err
	}
	return r.execution.state.explain(r.ctx, r.typed(err))
}

func (r *guardedRows) typed(err error) error {
	r.failed = true
	r.execution.state.followRollback(err)
	if r.refused {
		typed, _ := r.execution.classify(err)
		return typed
	}
	if e := r.execution; e.wrong(err) == session.Function {
		e.state.found.Forget(session.Function)
		err = &outdated{session.Function, err}
	}
	typed, raised := r.execution.answered(r.ctx, err)
	r.refused = raised
	return typed
}

// inspectRows reads the first row of a versioned statement: its refusal comes no later
// than that. If there is no row, the row that the statement is for is gone. In Observe
// mode any error has to be known before the application gets the first row.
func inspectRows(ctx context.Context, e *execution, rows driver.Rows) (driver.Rows, error) {
	observes := e.observes()
	if !observes && !e.plan.Versioned && !e.writesSealed() {
		return rows, nil
	}
	columns := rows.Columns()
	row := make([]driver.Value, len(columns))
	err := rows.Next(row)
	end := basedriver.IsEnd(err)
	if err != nil && !end {
		_, raised := e.classify(err)
		switch {
		case observes:
			return failedRows{columns, err}, basedriver.Closing(rows.Close, err)
		case raised || e.wrong(err) == session.Seals:
			return nil, basedriver.Closing(rows.Close, err)
		}
	}
	if end && e.plan.Versioned {
		if gone := e.gone(ctx); gone != nil {
			return nil, basedriver.Closing(rows.Close, gone)
		}
	}
	return &firstRow{rows, row, err}, nil
}

// finishRows returns the rows of a guarded query.
func finishRows(ctx context.Context, e *execution, rows driver.Rows, err error) (driver.Rows, error) {
	if failed, ok := rows.(failedRows); ok && err != nil {
		failed.err = err
		rows, err = failed, nil
	}
	if err != nil {
		e.release()
		return nil, err
	}
	guarded := &guardedRows{ctx: ctx, execution: e, base: rows}
	if first, ok := rows.(*firstRow); ok {
		guarded.first, guarded.base = first, first.Rows
	}
	return e.state.sqlmw.wrap(ctx, guarded)
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
