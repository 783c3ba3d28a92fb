package fencepgx

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sqlfence/sqlfence/internal/core"
)

var (
	_ core.Call[pgconn.CommandTag] = execCall{}
	_ core.Call[*rows]             = queryCall{}
)

// direct is for statements that pgx prepares itself.
type direct struct{}

func (direct) Prepare(context.Context, *core.Execution) error { return nil }
func (direct) Failed(*core.Execution, error)                  {}

type execCall struct{ direct }

func (execCall) Send(ctx context.Context, l core.ConnAdapter, r core.Request) (pgconn.CommandTag, error) {
	text, err := l.(*connAdapter).text(r)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	return l.(*connAdapter).conn.Exec(ctx, text, plain(r.Args)...)
}

func (execCall) Inspect(ctx context.Context, e *core.Execution, tag pgconn.CommandTag) (pgconn.CommandTag, error) {
	return tag, e.InspectResult(ctx, affected(tag.RowsAffected()))
}

func (execCall) Finish(
	ctx context.Context, e *core.Execution, tag pgconn.CommandTag, err error,
) (pgconn.CommandTag, error) {
	if err == nil {
		e.ReportGuarded(ctx)
		if n := len(e.Sent().Args); n > e.ArgCount() && n <= spared {
			e.Spare() // plain made a separate list for pgx
		}
	}
	return tag, err
}

// affected is the number of rows of a command as a sql.Result.
type affected int64

func (a affected) RowsAffected() (int64, error) { return int64(a), nil }
func (affected) LastInsertId() (int64, error) {
	return 0, errors.New("fencepgx: PostgreSQL has no such id")
}

type queryCall struct{ direct }

func (queryCall) Send(ctx context.Context, l core.ConnAdapter, r core.Request) (*rows, error) {
	text, err := l.(*connAdapter).text(r)
	if err != nil {
		return nil, err
	}
	got, err := l.(*connAdapter).conn.Query(ctx, text, plain(r.Args)...)
	if err != nil {
		return nil, err
	}
	return &rows{Rows: got}, nil
}

// Inspect reads the first row, so that a refusal is the error of the query.
func (queryCall) Inspect(ctx context.Context, e *core.Execution, r *rows) (*rows, error) {
	if r.ahead = r.Rows.Next(); r.ahead {
		return r, nil
	}
	err := r.Rows.Err()
	if refused := e.InspectFirst(ctx, err, err == nil); refused != nil {
		return nil, refused
	}
	return r, err
}

func (queryCall) Finish(ctx context.Context, e *core.Execution, r *rows, err error) (*rows, error) {
	if err != nil {
		return nil, err
	}
	r.endError = func(_ pgconn.CommandTag, err error) error {
		if err == nil {
			e.ReportGuarded(ctx)
			return nil
		}
		err, _ = e.RowError(ctx, err, false)
		return err
	}
	return r, nil
}
