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
// ErrStale, ErrNotIssued, ErrGone, ErrNoSerial, ErrLocked and a context's error aren't retried. If a commit gets no
// response, the error is [sqlfence.ErrUnknownOutcome]; on a DB or Conn only if the transaction had guarded statements
// or called [Hold].
func Retry(ctx context.Context, db Beginner, fn func(ctx context.Context, tx pgx.Tx) error, opts ...pgx.TxOptions,
) error {
	var with pgx.TxOptions
	if len(opts) > 0 {
		with = opts[len(opts)-1]
	}
	var fenced bool
	begin := func() (core.Tx, func() error, error) {
		begun, err := db.BeginTx(ctx, with)
		_, fenced = begun.(*tx)
		return attempt{ending{ctx, begun}}, func() error { return fn(ctx, begun) }, err
	}
	return core.DefaultRetrying.RunTx(ctx, begin, func(err error) bool {
		return !fenced && core.CommitUnanswered(stdlib.GetDefaultDriver(), err)
	})
}

// An attempt is a transaction that is rolled back even after its context has ended.
type attempt struct{ ending }

func (a attempt) Rollback() error { return a.inner.Rollback(context.WithoutCancel(a.ctx)) }
