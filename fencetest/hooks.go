package fencetest

import (
	"context"
	"database/sql/driver"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ngrok/sqlmw"
)

// hooks holds the functions to call before statements reach the database.
type hooks struct {
	sqlmw.NullInterceptor

	mu  sync.Mutex
	all []*hook
}

type hook struct {
	text   string
	do     func()
	called atomic.Bool
}

func (h *hooks) add(text string, do func()) *hook {
	h.mu.Lock()
	defer h.mu.Unlock()
	added := &hook{text: strings.ToLower(text), do: do}
	h.all = append(h.all, added)
	return added
}

// before calls the hooks that wait for a statement. Each hook runs once, so a statement that the hook sends doesn't
// call the hook again.
func (h *hooks) before(query string) {
	h.mu.Lock()
	all := h.all
	h.mu.Unlock()
	query = strings.ToLower(query)
	for _, waiting := range all {
		if _, ok := follows(waiting.text, query); ok && waiting.called.CompareAndSwap(false, true) {
			waiting.do()
		}
	}
}

func (h *hooks) around(d driver.Driver, dsn string) driver.Connector {
	return connector{sqlmw.Driver(d, h), dsn}
}

type connector struct {
	d   driver.Driver
	dsn string
}

func (c connector) Connect(context.Context) (driver.Conn, error) { return c.d.Open(c.dsn) }
func (c connector) Driver() driver.Driver                        { return c.d }

// ConnExecContext implements sqlmw.Interceptor.
func (h *hooks) ConnExecContext(
	ctx context.Context, conn driver.ExecerContext, query string, args []driver.NamedValue,
) (driver.Result, error) {
	h.before(query)
	return conn.ExecContext(ctx, query, args)
}

// ConnQueryContext implements sqlmw.Interceptor.
func (h *hooks) ConnQueryContext(
	ctx context.Context, conn driver.QueryerContext, query string, args []driver.NamedValue,
) (context.Context, driver.Rows, error) {
	h.before(query)
	rows, err := conn.QueryContext(ctx, query, args)
	return ctx, rows, err
}

// StmtExecContext implements sqlmw.Interceptor.
func (h *hooks) StmtExecContext(
	ctx context.Context, stmt driver.StmtExecContext, query string, args []driver.NamedValue,
) (driver.Result, error) {
	h.before(query)
	return stmt.ExecContext(ctx, args)
}

// StmtQueryContext implements sqlmw.Interceptor.
func (h *hooks) StmtQueryContext(
	ctx context.Context, stmt driver.StmtQueryContext, query string, args []driver.NamedValue,
) (context.Context, driver.Rows, error) {
	h.before(query)
	rows, err := stmt.QueryContext(ctx, args)
	return ctx, rows, err
}
