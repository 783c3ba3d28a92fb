package sqlfence

import (
	"context"
	"database/sql/driver"

	"github.com/sqlfence/sqlfence/internal/basedriver"
	"github.com/sqlfence/sqlfence/internal/core"
)

// How Exec and Query are sent, and their results read: see [core.Call].

type (
	execCall  struct{ cachedCall }
	queryCall struct{ cachedCall }
)

var (
	_ core.Call[driver.Result] = execCall{}
	_ core.Call[driver.Rows]   = queryCall{}
)

// cachedCall has the methods of execCall and queryCall for prepared statements.
type cachedCall struct{}

// Prepare prepares a statement that is to be sent prepared, unless it is prepared.
func (cachedCall) Prepare(ctx context.Context, e *core.Execution) error {
	r := e.Sent()
	if s, ok := r.Stmt.(*stmt); ok {
		return s.use(ctx, r.Query, r.Added, r.Escapes)
	}
	if !e.Keeps() || sizeOf(r.Args) > maxCachedArgs {
		return nil
	}
	k, use, err := e.Adapter().(*connAdapter).cache.take(ctx, r.Query)
	e.NoteCache(use)
	if k != nil {
		r.Stmt = k
	}
	return err
}

// Failed ends the use of a cached prepared statement that failed with err. If the database returned err, and neither a
// guard nor a constraint is the cause, the prepared statement may be: Failed drops it from the cache.
func (cachedCall) Failed(e *core.Execution, err error) {
	if k := release(e); k != nil && !e.ThrownByGuard(err) && e.IsResponse(err) {
		e.Adapter().(*connAdapter).cache.drop(k)
	}
}

// release releases the execution's cached statement, and returns it; nil if the execution uses no cached statement.
func release(e *core.Execution) *cachedStmt {
	k, ok := e.Sent().Stmt.(*cachedStmt)
	if !ok {
		return nil
	}
	e.Adapter().(*connAdapter).cache.release(k)
	e.Sent().Stmt = nil
	return k
}

// prepared returns the base driver's prepared statement for a request; nil if the connection executes the request.
func prepared(ctx context.Context, r core.Request) (driver.Stmt, error) {
	switch s := r.Stmt.(type) {
	case *stmt:
		err := s.use(ctx, r.Query, r.Added, r.Escapes)
		return s.base, err
	case *cachedStmt:
		return s.base, nil
	}
	return nil, nil
}

func (execCall) Send(ctx context.Context, l core.ConnAdapter, r core.Request) (driver.Result, error) {
	s, err := prepared(ctx, r)
	switch {
	case err != nil:
		return nil, err
	case s != nil:
		return basedriver.ExecStmt(ctx, s, r.Args)
	}
	return basedriver.Exec(ctx, l.(*connAdapter).base, r.Query, r.Args)
}

func (execCall) Inspect(ctx context.Context, e *core.Execution, res driver.Result) (driver.Result, error) {
	return res, e.InspectResult(ctx, res)
}

// Finish implements core.Call. A known driver keeps no reference to the arguments of a cached statement that was
// executed, so Finish returns the list of arguments to the connection for the next execution.
func (execCall) Finish(ctx context.Context, e *core.Execution, res driver.Result, err error) (driver.Result, error) {
	if err != nil {
		return res, err
	}
	e.ReportGuarded(ctx)
	if k := release(e); k != nil && e.Adapter().(*connAdapter).cache.direct && len(e.Sent().Args) > e.ArgCount() {
		e.Spare()
	}
	return res, nil
}

func (queryCall) Send(ctx context.Context, l core.ConnAdapter, r core.Request) (driver.Rows, error) {
	s, err := prepared(ctx, r)
	switch {
	case err != nil:
		return nil, err
	case s != nil:
		return basedriver.QueryStmt(ctx, s, r.Args)
	}
	return basedriver.Query(ctx, l.(*connAdapter).base, r.Query, r.Args)
}

// Inspect implements core.Call. It reads the first row if an error must be known before the application gets the rows.
func (queryCall) Inspect(ctx context.Context, e *core.Execution, rows driver.Rows) (driver.Rows, error) {
	if !e.LooksAhead() {
		return rows, nil
	}
	columns := rows.Columns()
	row := make([]driver.Value, len(columns))
	err := rows.Next(row)
	refused := e.InspectFirst(ctx, err, basedriver.IsEnd(err))
	switch {
	case refused == nil && len(columns) == 0 && basedriver.IsEnd(err):
		return failedRows{err: err}, rows.Close() // before Close some drivers send no other statement, such as COMMIT
	case refused == nil:
		return &firstRow{rows, row, err}, nil
	case e.Observes() && !basedriver.IsEnd(err):
		return failedRows{columns, refused}, basedriver.Closing(rows.Close, refused)
	}
	return nil, basedriver.Closing(rows.Close, refused)
}

func (queryCall) Finish(ctx context.Context, e *core.Execution, rows driver.Rows, err error) (driver.Rows, error) {
	if failed, ok := rows.(failedRows); ok && err != nil && !basedriver.IsEnd(failed.err) {
		failed.err = err
		rows, err = failed, nil
	}
	if err != nil {
		release(e)
		return nil, err
	}
	guarded := &guardedRows{ctx: ctx, execution: e, base: rows}
	if s, ok := e.Sent().Stmt.(*stmt); ok {
		s.open++
		guarded.stmt = s
	}
	if first, ok := rows.(*firstRow); ok {
		guarded.first, guarded.base = first, first.Rows
	}
	return e.Adapter().(*connAdapter).sqlmw.wrap(ctx, guarded)
}

// query runs a query, and wraps its rows if an error of a row may end the transaction.
func (c *conn) query(ctx context.Context, e *core.Execution) (driver.Rows, error) {
	rows, err := core.Execute(ctx, e, core.Call[driver.Rows](queryCall{}))
	if err != nil || !c.state.FollowsRows() {
		return rows, err
	}
	return c.adapter.sqlmw.wrap(ctx, &guardedRows{ctx: ctx, state: c.state, base: rows})
}
