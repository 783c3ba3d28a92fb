package fenced

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"io"
	"strings"

	"github.com/ngrok/sqlmw"

	"github.com/sqlfence/sqlfence"
)

// A watch sees, below sqlfence, how many rows a guarded statement changes that was sent
// after its holder had been superseded.
type watch struct {
	sqlmw.NullInterceptor
	holder *holder
}

// openWatched opens the database with a watch between sqlfence and the driver. SQLite's
// statements are kept as without it.
func (h *holder) openWatched(at place, opts []sqlfence.Option) (*sql.DB, error) {
	if !h.mark.lock {
		opts = append(opts, sqlfence.WithStatementCache(64))
	}
	base := sqlmw.Driver(h.mark.plain.Driver(), watch{holder: h})
	return sqlfence.OpenDB(connector{base, at.dsn}, opts...)
}

// A lateQuery is under way.
type lateQuery struct {
	text string
	rows int
}

// isLate reports whether a text, about to be sent, is guarded and its holder superseded.
func (w watch) isLate(query string) bool {
	return w.holder.isLate() && strings.Contains(query, "sqlfence")
}

func (w watch) ConnExecContext(ctx context.Context, conn driver.ExecerContext, query string, args []driver.NamedValue) (driver.Result, error) {
	late := w.isLate(query)
	r, err := conn.ExecContext(ctx, query, args)
	w.executed(late, query, r, err)
	return r, err
}

func (w watch) StmtExecContext(ctx context.Context, stmt driver.StmtExecContext, query string, args []driver.NamedValue) (driver.Result, error) {
	late := w.isLate(query)
	r, err := stmt.ExecContext(ctx, args)
	w.executed(late, query, r, err)
	return r, err
}

func (w watch) executed(late bool, query string, r driver.Result, err error) {
	if !late || err != nil {
		return
	}
	n, err := r.RowsAffected()
	if err != nil {
		w.holder.events.line("error", err.Error())
	}
	w.holder.passed(query, int(n))
}

func (w watch) ConnQueryContext(ctx context.Context, conn driver.QueryerContext, query string, args []driver.NamedValue) (context.Context, driver.Rows, error) {
	ctx = w.asked(ctx, query)
	rows, err := conn.QueryContext(ctx, query, args)
	return ctx, rows, err
}

func (w watch) StmtQueryContext(ctx context.Context, stmt driver.StmtQueryContext, query string, args []driver.NamedValue) (context.Context, driver.Rows, error) {
	ctx = w.asked(ctx, query)
	rows, err := stmt.QueryContext(ctx, args)
	return ctx, rows, err
}

type lateKey struct{}

// asked notes in the context of a query's rows that it is late.
func (w watch) asked(ctx context.Context, query string) context.Context {
	if !w.isLate(query) {
		return ctx
	}
	return context.WithValue(ctx, lateKey{}, &lateQuery{text: query})
}

// RowsNext counts the changed rows of a late query, which is a write with RETURNING.
func (w watch) RowsNext(ctx context.Context, rows driver.Rows, dest []driver.Value) error {
	err := rows.Next(dest)
	if late, ok := ctx.Value(lateKey{}).(*lateQuery); ok {
		switch {
		case err == nil:
			late.rows++
		case late.rows == 0 && err == io.EOF:
			w.holder.passed(late.text, 0)
		}
	}
	return err
}

func (w watch) RowsClose(ctx context.Context, rows driver.Rows) error {
	if late, ok := ctx.Value(lateKey{}).(*lateQuery); ok && late.rows > 0 {
		w.holder.passed(late.text, late.rows)
	}
	return rows.Close()
}
