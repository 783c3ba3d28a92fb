package harness

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// SetPrice is a write with two arguments.
const SetPrice = "UPDATE books SET price = $1 WHERE id = $2"

// EachWay runs test for the ways to run a statement: Exec, Query, and both of
// them prepared.
func EachWay(t *testing.T, test func(t *testing.T, run RunFunc)) {
	t.Helper()
	for name, run := range Ways {
		t.Run(name, func(t *testing.T) { test(t, run) })
	}
}

// A RunFunc runs a statement in one way.
type RunFunc func(ctx context.Context, r Runner, query string, args ...any) error

// Ways are Exec and Query, and both of them prepared.
var Ways = map[string]RunFunc{
	"exec": func(ctx context.Context, r Runner, query string, args ...any) error {
		_, err := r.ExecContext(ctx, query, args...)
		return err
	},
	"query": func(ctx context.Context, r Runner, query string, args ...any) error {
		_, err := Returned(r.QueryContext(ctx, query, args...))
		return err
	},
	"prepared exec": func(ctx context.Context, r Runner, query string, args ...any) error {
		_, err := Prepared(ctx, r, query, func(s *sql.Stmt) (int64, error) { return Affected(s.ExecContext(ctx, args...)) })
		return err
	},
	"prepared query": func(ctx context.Context, r Runner, query string, args ...any) error {
		_, err := Prepared(ctx, r, query, func(s *sql.Stmt) (int64, error) { return Returned(s.QueryContext(ctx, args...)) })
		return err
	},
}

// Directly runs f for the ways to send a statement that isn't prepared.
func Directly(f func(name string, run RunFunc)) {
	for name, run := range Ways {
		if !strings.HasPrefix(name, "prepared") {
			f(name, run)
		}
	}
}

// PgxModes are all of pgx's ways to send a statement.
var PgxModes = []pgx.QueryExecMode{
	pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
	pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
}
