package orders_test

import (
	"context"
	"database/sql"
	"errors"
)

// A runner executes statements: in a transaction or outside.
type runner interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// A tx is a transaction whose COMMIT may be repeated if the database was busy.
type tx struct {
	runner
	commit, rollback func(context.Context) error
}

// begin begins a transaction of the mode.
func (p *place) begin(ctx context.Context, db *sql.DB) (*tx, error) {
	if p.mode.begin == "" {
		t, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: p.level})
		if err != nil {
			return nil, err
		}
		return &tx{t, unbound(t.Commit), unbound(t.Rollback)}, nil
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	send := func(query string, ends bool) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := conn.ExecContext(ctx, query)
			if (err == nil) == ends {
				return errors.Join(err, conn.Close())
			}
			return err
		}
	}
	if err := send(p.mode.begin, false)(ctx); err != nil {
		return nil, err
	}
	return &tx{conn, send("COMMIT", true), send("ROLLBACK", true)}, nil
}

// unbound turns f into a function that ignores its context.
func unbound(f func() error) func(context.Context) error {
	return func(context.Context) error { return f() }
}
