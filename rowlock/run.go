package rowlock

import (
	"context"
	"database/sql"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/internal/trusted"
)

// owned is a database or a transaction. A fenced database sends its statements unchanged, because they are marked as
// sqlfence's.
type owned struct {
	db interface {
		dialectopt.Queries
		ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	}
}

// exec returns how many rows a statement changed.
func (q owned) exec(ctx context.Context, query string, args ...any) (int, error) {
	result, err := q.db.ExecContext(trusted.Context(ctx, query), query, args...)
	if err != nil {
		return 0, err
	}
	n, err := result.RowsAffected()
	return int(n), err
}

// each calls scan for each row of a query, to the end: a database may answer with a row first and then fail to commit.
func (q owned) each(ctx context.Context, scan func(*sql.Rows) error, query string, args ...any) error {
	return dialectopt.EachRow(ctx, q.db, scan, query, args...)
}

// row reads the only row of a query.
func (q owned) row(ctx context.Context, query string, args []any, dest ...any) error {
	found := false
	err := q.each(ctx, func(rows *sql.Rows) error { found = true; return rows.Scan(dest...) }, query, args...)
	if err == nil && !found {
		err = sql.ErrNoRows
	}
	return err
}

// run calls fn in the caller's transaction, or in a new one if fn sends several statements; do names the method in
// errors. The statements only touch the lock's columns, so they need no token. A fenced database recognises them by
// their text (see owned); the Bypass is for wrappers that change the text, for example by a comment.
func (t *Table) run(ctx context.Context, do string, fn func(context.Context, owned) error) error {
	return t.explain(ctx, do, t.send(sqlfence.Bypass(ctx, "rowlock: "+do), fn))
}

func (t *Table) send(ctx context.Context, fn func(context.Context, owned) error) error {
	switch {
	case t.tx != nil:
		return fn(ctx, owned{t.tx})
	case t.manager != nil || t.dialect.multiStatement: // with a manager, fn also writes to the manager's table
		return transact(ctx, t.db, t.dialect, fn)
	}
	return dberr.Resend(ctx, dberr.IsSerialization, func() error { return fn(ctx, owned{t.db}) })
}

// exec sends a rendered statement, and returns how many rows it changed.
func (t *Table) exec(ctx context.Context, q owned, text string, key []any,
	others sqltext.Fragments) (n int, err error) {
	text, args := t.render(text, key, others)
	err = t.dialect.abandoning(ctx, t.cleanup, text, func(text string) error {
		n, err = q.exec(ctx, text, args...)
		return err
	})
	return n, err
}

// lock keeps other sessions from changing the row, if the transaction's first write doesn't. It sends lockRow with
// Query, because go-sql-driver/mysql 1.10 waits for ever if Exec sends a prepared statement that returns rows.
func (t *Table) lock(ctx context.Context, q owned, key []any) error {
	if t.dialect.lockRow == "" {
		return nil
	}
	text, args := t.render(t.dialect.lockRow, key, nil)
	return t.dialect.abandoning(ctx, t.cleanup, text, func(text string) error {
		return q.each(ctx, func(*sql.Rows) error { return nil }, text, args...)
	})
}

// transact calls fn in a new transaction, and again as [sqlfence.Retry] does, but not after a refusal.
func transact(ctx context.Context, db *sql.DB, d *dialect, fn func(context.Context, owned) error) error {
	opts := sqlfence.RetryOptions{Tx: &sql.TxOptions{Isolation: d.isolation}}
	var refusal error
	err := dberr.Reprepared(func() error {
		return sqlfence.Retry(ctx, db, opts, func(ctx context.Context, tx *sql.Tx) error {
			refusal = nil
			err := fn(ctx, owned{tx})
			if isRefusal(err) {
				refusal, err = err, nil
			}
			return err
		})
	})
	if err != nil {
		return err
	}
	return refusal
}
