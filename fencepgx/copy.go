package fencepgx

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/core"
	"github.com/sqlfence/sqlfence/internal/guard"
)

// A COPY is planned as the INSERT of one of its rows. If the guard of the INSERT only adds a column and its value, the
// COPY gets the same column, and the value in each row. A COPY has no place for any other guard, such as the ledger's,
// and is refused.

// CopyFrom copies rows into a table. If a registered table has a fence column, and no other guard for new rows, each
// row gets the token, and a [sqlfence.Observer] gets the events of an INSERT. For another registered table the error is
// [sqlfence.ErrUnguardable]; use INSERT INTO ... SELECT ... FROM unnest($1::bigint[], $2::text[]), with an array for
// each column. In Observe mode rows are copied as they are.
func (c *Conn) CopyFrom(
	ctx context.Context, table pgx.Identifier, columns []string, src pgx.CopyFromSource,
) (int64, error) {
	s := c.session
	s.follow()
	call := &copyCall{table: table, columns: columns, src: src}
	r := core.Request{Query: "COPY " + table.Sanitize() + " FROM STDIN"}
	plan := s.state.Rewriter().Plan(r.Query)
	if plan.Verdict != guard.Pass {
		call.insert = insertOf(table, columns)
		by := s.state.Rewriter().Plan(call.insert)
		text, _, err := by.Default()
		if _, added := call.added(text); by.Verdict == guard.Refuse || by.Verdict == guard.Guard && added && err == nil {
			plan, r = by, core.Request{Query: call.insert, Args: named(nil, make([]any, len(columns)))}
		} else {
			plan, call.insert = plan.Refused(copyUnguardable), ""
		}
	}
	e := s.state.NewExecution(r, plan, false)
	call.observed = e.Observes()
	n, err := core.Execute(ctx, e, core.Call[int64](call))
	return n, s.noted(err)
}

const copyUnguardable = "COPY can't be guarded by this table's rules; write INSERT INTO ... SELECT ... FROM " +
	"unnest($1::bigint[], $2::text[]), with an array for each column, or run it under Bypass"

// insertOf returns the INSERT of one row.
func insertOf(table pgx.Identifier, columns []string) string {
	names, places := make([]string, len(columns)), make([]string, len(columns))
	for i, column := range columns {
		names[i], places[i] = pgx.Identifier{column}.Sanitize(), fmt.Sprint("$", i+1)
	}
	return "INSERT INTO " + table.Sanitize() + " (" + strings.Join(names, ", ") + ") VALUES (" +
		strings.Join(places, ", ") + ")"
}

// A copyCall sends a COPY.
type copyCall struct {
	table    pgx.Identifier
	columns  []string
	src      pgx.CopyFromSource
	insert   string // an INSERT of one row; empty if the table needs no guard
	observed bool   // and not guarded
	sent     bool   // the rows are read once
	failed   error
}

var _ core.Call[int64] = (*copyCall)(nil)

// Prepare refuses a guard that is more than a column.
func (c *copyCall) Prepare(_ context.Context, e *core.Execution) error {
	if c.sent {
		return c.failed
	}
	r := e.Sent()
	if _, ok := c.added(r.Query); !ok || len(r.Args) != len(c.columns)+1 {
		return &sqlfence.UnguardableError{Offset: -1, Table: strings.Join(c.table, "."), Reason: copyUnguardable}
	}
	return nil
}

// added returns the column that the guard adds to the INSERT; ok is false if it adds anything else.
func (c *copyCall) added(guarded string) (column string, ok bool) {
	head, places, _ := strings.Cut(c.insert, ") VALUES (")
	places = strings.TrimSuffix(places, ")")
	quoted, hasHead := strings.CutPrefix(guarded, head+", ")
	quoted, hasTail := strings.CutSuffix(quoted, fmt.Sprintf(") VALUES (%s, $%d::bigint)", places, len(c.columns)+1))
	column = strings.ReplaceAll(strings.Trim(quoted, `"`), `""`, `"`)
	return column, hasHead && hasTail && pgx.Identifier{column}.Sanitize() == quoted
}

func (c *copyCall) Send(ctx context.Context, l core.ConnAdapter, r core.Request) (n int64, err error) {
	if c.sent {
		return 0, c.failed
	}
	columns, src := c.columns, c.src
	if c.insert != "" && r.Query != c.insert && !c.observed {
		column, _ := c.added(r.Query) // Prepare has looked
		columns = append(columns[:len(columns):len(columns)], column)
		src = &extended{CopyFromSource: src, value: r.Args[len(r.Args)-1].Value}
	}
	c.sent = true
	n, c.failed = l.(*connAdapter).conn.CopyFrom(ctx, c.table, columns, src)
	return n, c.failed
}

func (c *copyCall) Inspect(_ context.Context, _ *core.Execution, n int64) (int64, error) {
	return n, nil
}

func (c *copyCall) Failed(*core.Execution, error) {}

func (c *copyCall) Finish(ctx context.Context, e *core.Execution, n int64, err error) (int64, error) {
	if err == nil {
		e.ReportGuarded(ctx)
	}
	return n, err
}

// extended adds a value to each row.
type extended struct {
	pgx.CopyFromSource
	value any
	row   []any
}

func (m *extended) Values() ([]any, error) {
	row, err := m.CopyFromSource.Values()
	m.row = append(append(m.row[:0], row...), m.value)
	return m.row, err
}
