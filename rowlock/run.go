package rowlock

import (
	"context"
	"database/sql"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/internal/trusted"
)

// A querier is a database or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// owned marks the statements of a querier as sqlfence's: a fenced database sends them as
// they are, and tells no observer and no log.
type owned struct{ querier }

func (q owned) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return q.querier.QueryContext(trusted.Context(ctx, query), query, args...)
}

func (q owned) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return q.querier.ExecContext(trusted.Context(ctx, query), query, args...)
}

func (q owned) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	return q.querier.QueryRowContext(trusted.Context(ctx, query), query, args...)
}

// run calls fn for what the reason do says: in the caller's transaction if there is one,
// in one of its own if fn sends several statements, else without. The statements only
// touch the lock's columns, so they need no token and don't change the version. The
// Bypass is for what stands before the fence and puts a comment before a statement,
// which isn't recognised then.
func (t *Table) run(ctx context.Context, do string, fn func(context.Context, querier) error) error {
	return t.explain(ctx, do, t.send(sqlfence.Bypass(ctx, "rowlock: "+do), fn))
}

func (t *Table) send(ctx context.Context, fn func(context.Context, querier) error) error {
	switch {
	case t.tx != nil:
		return fn(ctx, owned{t.tx})
	case t.manager != nil || t.dialect.several: // with a manager its table is written, too
		return transact(ctx, t.db, t.dialect, fn)
	}
	return dberr.Resend(ctx, dberr.IsSerialization, func() error { return fn(ctx, owned{t.db}) })
}

// exec sends a statement as [Table.render] writes it, and returns how many rows it changed.
func (t *Table) exec(ctx context.Context, q querier, text string, key []any, others sqltext.Pieces) (n int, err error) {
	text, args := t.render(text, key, others)
	err = t.dialect.abandoning(ctx, t.cleanup, text, func(text string) error {
		n, err = changed(q.ExecContext(ctx, text, args...))
		return err
	})
	return n, err
}

// lock keeps others from changing the row, where the transaction's first write doesn't. It is
// a query: go-sql-driver/mysql 1.10 waits for ever for the end of the rows of a prepared
// statement that it executes.
func (t *Table) lock(ctx context.Context, q querier, key []any) error {
	if t.dialect.lockRow == "" {
		return nil
	}
	text, args := t.render(t.dialect.lockRow, key, nil)
	return t.dialect.abandoning(ctx, t.cleanup, text, func(text string) error {
		rows, err := q.QueryContext(ctx, text, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
		}
		return rows.Err()
	})
}

func changed(result sql.Result, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	n, err := result.RowsAffected()
	return int(n), err
}

// transact calls fn in a transaction of its own, and again after what [sqlfence.Retry]
// repeats, but not after a refusal.
func transact(ctx context.Context, db *sql.DB, d *dialect, fn func(context.Context, querier) error) error {
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
