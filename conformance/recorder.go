package conformance

//lint:file-ignore SA1019 base drivers may have nothing newer than what is deprecated

import (
	"context"
	"database/sql/driver"
	"fmt"
	"slices"
	"sync"

	every "github.com/sqlfence/sqlfence/internal/dialect"
)

// A recorder is a connector that records the calls to the driver that it wraps. Its connections implement every
// optional interface, and act as database/sql would if the driver lacks one. So a recorder can show which calls
// sqlfence makes, but not which interfaces the driver has.
type recorder struct {
	base driver.Connector

	mu    sync.Mutex
	calls calls
	open  map[string]int // by kind, the number of objects that are still open
}

// A call is one call of the driver that sends something to the database.
type call struct {
	kind  string // "exec", "query", "prepare", "stmt exec", "stmt query", "begin", "commit", "rollback"
	query string
	ctx   context.Context // nil if the method has none
}

type calls []call

// noContext stands for the context of a method that has none.
var noContext context.Context

func (f *kit) recorder() *recorder {
	return &recorder{base: f.connector, open: map[string]int{}}
}

// take returns the calls since the last take, without the queries that sqlfence sends about the server.
func (r *recorder) take() calls {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := slices.DeleteFunc(r.calls, func(c call) bool { return every.IsSettingsQuery(c.query) })
	r.calls = nil
	return taken
}

func (c calls) kinds() (kinds []string) {
	for _, call := range c {
		kinds = append(kinds, call.kind)
	}
	return kinds
}

func (c calls) statements() (texts []string) {
	for _, call := range c {
		if call.query != "" {
			texts = append(texts, call.query)
		}
	}
	return texts
}

func (r *recorder) left() (open []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for kind, n := range r.open {
		if n != 0 {
			open = append(open, fmt.Sprintf("%d %s", n, kind))
		}
	}
	return open
}

func (r *recorder) add(ctx context.Context, kind, query string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, call{kind, query, ctx})
}

func (r *recorder) opened(kind string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open[kind] += n
}

// Driver implements driver.Connector. It returns the base's driver, from which sqlfence recognizes the database.
func (r *recorder) Driver() driver.Driver { return r.base.Driver() }

// Connect implements driver.Connector.
func (r *recorder) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := r.base.Connect(ctx)
	if err != nil {
		return nil, err
	}
	r.opened("connections", 1)
	return &recConn{c, r}, nil
}

type recTx struct {
	driver.Tx
	r *recorder
}

func (t recTx) Commit() error {
	t.r.opened("transactions", -1)
	t.r.add(noContext, "commit", "")
	return t.Tx.Commit()
}

func (t recTx) Rollback() error {
	t.r.opened("transactions", -1)
	t.r.add(noContext, "rollback", "")
	return t.Tx.Rollback()
}

type recRows struct {
	driver.Rows
	r    *recorder
	once *sync.Once
}

func (r *recorder) rows(rows driver.Rows, err error) (driver.Rows, error) {
	if err != nil {
		return nil, err
	}
	r.opened("rows", 1)
	return recRows{rows, r, new(sync.Once)}, nil
}

func (r recRows) Close() error {
	r.once.Do(func() { r.r.opened("rows", -1) })
	return r.Rows.Close()
}
