package sqlfence

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/ngrok/sqlmw"

	"github.com/sqlfence/sqlfence/internal/basedriver"
	"github.com/sqlfence/sqlfence/internal/core"
)

// An interceptor uses ngrok/sqlmw for transactions, because core.Conn must see their end, and for rows of guarded
// queries, because any row may bring a refusal. sqlmw wraps a driver's rows with exactly the optional interfaces that
// they implement; there are dozens of combinations. sqlmw is used for nothing else: see docs/adr/0003.
type interceptor struct {
	sqlmw.NullInterceptor
	state *core.Conn
	base  driver.Conn
	conn  middleware // sqlmw's connection
}

var _ sqlmw.Interceptor = (*interceptor)(nil)

// middleware has the used methods of sqlmw's connection.
type middleware interface {
	driver.QueryerContext
	driver.ConnBeginTx
}

// newInterceptor returns an interceptor for one connection. Connections can't share an interceptor, because sqlmw
// doesn't pass the connection to its methods.
func newInterceptor(base driver.Conn, state *core.Conn) (*interceptor, error) {
	i := &interceptor{state: state, base: base}
	c, err := sqlmw.Driver(opened{base}, i).Open("")
	if err != nil {
		return nil, err
	}
	conn, ok := c.(middleware)
	if !ok {
		return nil, fmt.Errorf("sqlfence: sqlmw's connection %T lacks a method", c)
	}
	i.conn = conn
	return i, nil
}

// opened is a driver that returns an open connection, so that sqlmw wraps a connector's connection. sqlmw intercepts
// queries only of a connection with a QueryContext. So opened has one, but interceptor.ConnQueryContext is called.
type opened struct{ driver.Conn }

func (o opened) Open(string) (driver.Conn, error) { return o, nil }
func (o opened) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return nil, driver.ErrSkip
}

// wrap returns r with the optional interfaces of the base driver's rows.
func (i *interceptor) wrap(ctx context.Context, r *guardedRows) (driver.Rows, error) {
	rows, err := i.conn.QueryContext(context.WithValue(ctx, rowsKey{}, r), "", nil)
	if err != nil {
		return nil, err
	}
	if r.first != nil { // the first row was read ahead, and can't be scanned again
		return rows, nil
	}
	return basedriver.WithScanner(rows, r.base, r), nil
}

// rowsKey is the key of the guardedRows in the context that sqlmw keeps for its rows.
type rowsKey struct{}

func rowsFrom(ctx context.Context) *guardedRows { return ctx.Value(rowsKey{}).(*guardedRows) }

// ConnQueryContext returns the rows of the context, for sqlmw to wrap.
func (i *interceptor) ConnQueryContext(
	ctx context.Context, _ driver.QueryerContext, _ string, _ []driver.NamedValue,
) (context.Context, driver.Rows, error) {
	return ctx, rowsFrom(ctx).base, nil
}

func (i *interceptor) RowsNext(ctx context.Context, _ driver.Rows, dest []driver.Value) error {
	return rowsFrom(ctx).next(dest)
}

func (i *interceptor) RowsClose(ctx context.Context, _ driver.Rows) error {
	return rowsFrom(ctx).close()
}

func (i *interceptor) begin(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	return i.conn.BeginTx(ctx, opts)
}

// ConnBeginTx begins a transaction of the base connection, and notes it.
func (i *interceptor) ConnBeginTx(
	ctx context.Context, _ driver.ConnBeginTx, opts driver.TxOptions,
) (context.Context, driver.Tx, error) {
	if err := i.state.BeforeTx(ctx, opts.ReadOnly); err != nil {
		return ctx, nil, err
	}
	tx, err := basedriver.Begin(ctx, i.base, opts)
	if err != nil && tx != nil {
		_ = i.state.Rollback(tx) // the reason is err
	}
	return ctx, tx, i.state.Began(ctx, err)
}

// TxCommit commits a transaction; ctx is the context of BeginTx.
func (i *interceptor) TxCommit(ctx context.Context, tx driver.Tx) error {
	return i.state.Commit(ctx, tx)
}

func (i *interceptor) TxRollback(_ context.Context, tx driver.Tx) error {
	return i.state.Rollback(tx)
}
