package rowlock

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dberr"
)

// A querier is a database or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// run runs fn in the caller's transaction if there is one; in one of its own if
// several statements belong together, else without. The statements touch the
// lock's columns only, so they need no token and count as no change of the row.
func (t *Table) run(ctx context.Context, do string, fn func(context.Context, querier) error) error {
	return t.explain(do, t.send(sqlfence.Bypass(ctx, "rowlock: "+do), fn))
}

// explain adds to a failure what failed; a refusal says it itself.
func (t *Table) explain(do string, err error) error {
	if err == nil || isRefusal(err) {
		return err
	}
	return fmt.Errorf("rowlock: %s: table %q: %w", do, t.name, err)
}

func (t *Table) send(ctx context.Context, fn func(context.Context, querier) error) error {
	switch {
	case t.tx != nil:
		return fn(ctx, t.tx)
	case t.manager != nil:
		return transact(ctx, t.db, t.dialect, fn)
	}
	return resend(func() error { return fn(ctx, t.db) })
}

// transact runs fn in a transaction of its own, which a refusal doesn't repeat. READ COMMITTED is enough, since
// each statement decides on the newest version of the row, which it has locked;
// SQLite has one level only.
func transact(ctx context.Context, db *sql.DB, d sqlfence.Dialect, fn func(context.Context, querier) error) error {
	var opts sqlfence.RetryOptions
	if d == sqlfence.Postgres {
		opts.Tx = &sql.TxOptions{Isolation: sql.LevelReadCommitted}
	}
	var refusal error
	err := sqlfence.Retry(ctx, db, opts, func(ctx context.Context, tx *sql.Tx) error {
		refusal = nil
		err := fn(ctx, tx)
		if isRefusal(err) {
			refusal, err = err, nil
		}
		return err
	})
	if err != nil {
		return err
	}
	return refusal
}

// resend sends a statement again that met a serialization failure, which it does
// where the default level is higher: it has changed nothing, and someone else got
// on. Once the context ends the error is another.
func resend(send func() error) error {
	for {
		if err := send(); dberr.SQLState(err) != dberr.SerializationFailure {
			return err
		}
	}
}
