package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/ngrok/sqlmw"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/examples/internal/sqlite"
)

// openSQLite makes a file in a temporary folder.
func openSQLite(context.Context, string) (*database, error) {
	dir, err := os.MkdirTemp("", "sqlfence-compared-")
	if err != nil {
		return nil, err
	}
	dsn := sqlite.DSN(filepath.Join(dir, "books.db"))
	admin, err := sql.Open(sqlite.Driver, dsn)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	counter := new(counter)
	app := connector{sqlmw.Driver(admin.Driver(), counter), dsn}
	return &database{
		name: "SQLite, driver " + sqlite.Driver, cost: "a write", admin: admin,
		approaches: []approach{
			nothing, version, triggerOnColumn(columnTriggerSQLite),
			fenced("sqlfence, RowFence", sqlfence.RowFence("fence_token")),
			fenced("sqlfence, Ledger", sqlfence.Ledger()),
			fenced("sqlfence, both", sqlfence.RowFence("fence_token"), sqlfence.Ledger()),
		},
		missing: []string{"", "SQLite has no row locks and no advisory locks (a transaction that writes holds the whole " +
			"file),",
			"no settings that a trigger could read, and no row-level security."},
		bare: func() (*sql.DB, error) { return sql.OpenDB(app), nil },
		fenced: func(opts ...sqlfence.Option) (*sql.DB, error) {
			return sqlfence.OpenDB(app, append(opts, sqlfence.WithDialect(sqlfence.SQLite))...)
		},
		reset: []string{"DROP TABLE IF EXISTS books", "DROP TABLE IF EXISTS fencing_tokens", "DROP TABLE IF EXISTS " +
			"sqlfence_ledger"},
		counted: func() (int, int) { return int(counter.statements.Load()), 0 },
		costs:   func(statements, _ int) string { return fmt.Sprint(statements) },
		drop:    func() error { return errors.Join(admin.Close(), os.RemoveAll(dir)) },
	}, nil
}

const columnTriggerSQLite = `CREATE TRIGGER check_token BEFORE UPDATE ON books WHEN NEW.fence_token < OLD.fence_token
	BEGIN SELECT RAISE(ABORT, 'stale token'); END`

// A connector opens connections of a driver.
type connector struct {
	driver driver.Driver
	dsn    string
}

func (c connector) Connect(context.Context) (driver.Conn, error) { return c.driver.Open(c.dsn) }
func (c connector) Driver() driver.Driver                        { return c.driver }

// A counter counts what reaches the driver.
type counter struct {
	sqlmw.NullInterceptor
	statements atomic.Int64
}

func (c *counter) ConnExecContext(ctx context.Context, conn driver.ExecerContext, query string, args []driver.NamedValue) (driver.Result, error) {
	c.statements.Add(1)
	return conn.ExecContext(ctx, query, args)
}

func (c *counter) ConnQueryContext(ctx context.Context, conn driver.QueryerContext, query string, args []driver.NamedValue) (context.Context, driver.Rows, error) {
	c.statements.Add(1)
	rows, err := conn.QueryContext(ctx, query, args)
	return ctx, rows, err
}

func (c *counter) StmtExecContext(ctx context.Context, stmt driver.StmtExecContext, _ string, args []driver.NamedValue) (driver.Result, error) {
	c.statements.Add(1)
	return stmt.ExecContext(ctx, args)
}
