package fencepgx

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/core"
	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/tokens"
)

// Hold is [tokens.Store.Hold] for a transaction of a [DB], a pgxpool.Pool or a pgx.Conn. Call Hold outside of a nested
// transaction, which is a savepoint. store keeps the ledger of the same database; it may be on [DB.SQL], or on a pool
// of package stdlib.
func Hold(ctx context.Context, tx pgx.Tx, store *tokens.Store, tokens ...sqlfence.Token) error {
	if tx == nil {
		return store.Hold(ctx, nil, tokens...)
	}
	return store.Hold(ctx, heldTx{tx}, tokens...)
}

// A heldTx is a transaction for package tokens.
type heldTx struct{ tx pgx.Tx }

func (h heldTx) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	tag, err := h.tx.Exec(ctx, query, args...)
	return affected(tag.RowsAffected()), err
}

// QueryContext isn't used, because there is Texts.
func (heldTx) QueryContext(context.Context, string, ...any) (*sql.Rows, error) {
	return nil, errors.New("fencepgx: a transaction of pgx's has no sql.Rows")
}

// Texts returns the rows of a query as texts.
func (h heldTx) Texts(ctx context.Context, query string, args ...any) (all [][]string, err error) {
	rows, err := h.tx.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			return nil, err
		}
		row := make([]string, len(values))
		for i, value := range values {
			if value != nil {
				row[i] = fmt.Sprint(value)
			}
		}
		all = append(all, row)
	}
	return all, rows.Err()
}

// A Beginner begins transactions: a [DB], a [Conn], a pgxpool.Pool or a pgx.Conn.
type Beginner interface {
	BeginTx(ctx context.Context, opts pgx.TxOptions) (pgx.Tx, error)
}

// Retry is [sqlfence.Retry] for pgx: it runs fn in a transaction, with the last of opts, and commits it. After a
// temporary error, such as a deadlock, it runs fn again in a new transaction, up to 10 times with growing pauses. So fn
// must read, each time, the data that it decides on, must have no effects outside of the transaction, and must not end
// the transaction.
//
// ErrStale, ErrNotIssued, ErrGone, ErrNoSerial, ErrLocked and a context's error aren't retried. Without an answer to a
// commit, the error is [sqlfence.ErrUnknownOutcome]; of a DB only if the transaction had guarded statements or has
// called [Hold].
func Retry(ctx context.Context, db Beginner, fn func(ctx context.Context, tx pgx.Tx) error, opts ...pgx.TxOptions,
) error {
	var with pgx.TxOptions
	if len(opts) > 0 {
		with = opts[len(opts)-1]
	}
	return core.DefaultRetrying.Run(ctx, func() (again bool, err error) { return attempt(ctx, db, with, fn) })
}

var notRetried = []error{sqlfence.ErrStale, sqlfence.ErrNotIssued, sqlfence.ErrGone, sqlfence.ErrNoSerial,
	sqlfence.ErrLocked, sqlfence.ErrUnknownOutcome}

// attempt runs fn in one transaction, and reports whether to run it again.
func attempt(
	ctx context.Context, db Beginner, opts pgx.TxOptions, fn func(ctx context.Context, tx pgx.Tx) error,
) (again bool, err error) {
	begun, err := db.BeginTx(ctx, opts)
	if err != nil {
		return core.Retryable(err, notRetried), err
	}
	defer func() {
		// Rollback does nothing after a commit. It also runs if fn panics, and after ctx has ended.
		_ = begun.Rollback(context.WithoutCancel(ctx))
	}()
	if err := fn(ctx, begun); err != nil {
		return core.Retryable(err, notRetried), err
	}
	if err := ctx.Err(); err != nil {
		return false, err // nothing was committed
	}
	err = begun.Commit(ctx)
	if _, fenced := begun.(*tx); !fenced && core.CommitUnanswered(stdlib.GetDefaultDriver(), err) {
		return false, fmt.Errorf("%w: %w", sqlfence.ErrUnknownOutcome, err)
	}
	return dberr.IsRolledBack(err), err
}
