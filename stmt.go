package sqlfence

//lint:file-ignore SA1019 base drivers may have nothing newer than what is deprecated

import (
	"context"
	"database/sql/driver"

	"github.com/sqlfence/sqlfence/internal/basedriver"
	"github.com/sqlfence/sqlfence/internal/core"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/rewrite"
)

var (
	_ driver.Stmt              = (*stmt)(nil)
	_ driver.StmtExecContext   = (*stmt)(nil)
	_ driver.StmtQueryContext  = (*stmt)(nil)
	_ driver.NamedValueChecker = (*stmt)(nil)
)

// stmt is a prepared statement that may need a guard. Only an execution has the token. So stmt first prepares the form
// of the SQL that most executions need, with one token for each table as an argument. If an execution needs another
// form, stmt prepares that form, and keeps it instead.
type stmt struct {
	conn   *conn
	query  string
	plan   *rewrite.Plan
	by     *rewrite.Rewriter // the rewriter that made plan
	inputs int               // the result of NumInput

	base  driver.Stmt
	text  string        // the SQL of base
	added []rewrite.Arg // the guard's arguments
	read  lex.Escapes   // the session's string settings when base was prepared

	open     int           // number of rows that aren't closed
	replaced []driver.Stmt // earlier bases, which are closed after the rows, because a closed statement ends its rows
}

// prepare prepares the default form of a statement.
func (s *stmt) prepare(ctx context.Context) error {
	state := s.conn.state
	form, err := state.PrepareForm(ctx, s.query, s.current())
	if err != nil {
		return err
	}
	if err := s.use(ctx, form.Text, form.Added, form.Escapes); err != nil {
		return state.PrepareFailed(ctx, s.query, s.plan, form, err)
	}
	switch s.inputs = s.base.NumInput(); {
	case s.inputs >= 0:
		s.inputs -= len(form.Added)
	default:
		s.inputs = form.Inputs
	}
	return nil
}

// current returns the plan. If the connection has a new rewriter, current plans the statement again.
func (s *stmt) current() *rewrite.Plan {
	if by := s.conn.state.Rewriter(); by != s.by {
		s.plan, s.by = by.Plan(s.query), by
	}
	return s.plan
}

// use makes base the prepared statement of text, unless it was prepared from text under the same settings for string
// literals (read). added are the guard's arguments in text.
func (s *stmt) use(ctx context.Context, text string, added []rewrite.Arg, read lex.Escapes) error {
	if s.base != nil && s.text == text && s.read == read {
		return nil
	}
	base, err := basedriver.Prepare(ctx, s.conn.adapter.base, text)
	if err != nil {
		return err
	}
	old := s.base
	s.base, s.text, s.added, s.read = base, text, added, read
	switch {
	case old == nil:
		return nil
	case s.open > 0:
		s.replaced = append(s.replaced, old)
		return nil
	}
	return old.Close()
}

// closeRows records that rows of the statement were closed. It does nothing if s is nil.
func (s *stmt) closeRows() {
	if s == nil {
		return
	}
	if s.open--; s.open == 0 {
		s.closeReplaced()
	}
}

// closeReplaced closes the earlier bases. A failed Close means that the connection is broken, which the next statement
// reports.
func (s *stmt) closeReplaced() {
	for _, base := range s.replaced {
		_ = base.Close()
	}
	s.replaced = nil
}

func (s *stmt) Close() error {
	s.closeReplaced()
	return s.base.Close()
}

// NumInput implements driver.Stmt. It counts the application's arguments.
func (s *stmt) NumInput() int { return s.inputs }

func (s *stmt) Exec(args []driver.Value) (driver.Result, error) {
	return s.ExecContext(context.Background(), basedriver.Named(args))
}

func (s *stmt) Query(args []driver.Value) (driver.Rows, error) {
	return s.QueryContext(context.Background(), basedriver.Named(args))
}

func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return core.Execute(ctx, s.execution(args, false), core.Call[driver.Result](execCall{}))
}

func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	open := s.open
	rows, err := s.conn.query(ctx, s.execution(args, true))
	if err != nil || s.open > open || s.plan.Verdict == guard.Pass {
		return rows, err
	}
	s.open++ // the query was sent without a guard, as under Bypass
	return s.conn.adapter.sqlmw.wrap(ctx, &guardedRows{ctx: ctx, state: s.conn.state, base: rows, stmt: s})
}

func (s *stmt) execution(args []driver.NamedValue, rows bool) *core.Execution {
	return s.conn.state.NewExecution(core.Request{Query: s.query, Args: args, Stmt: s}, s.current(), rows)
}

// place returns the position of the application's argument n among the arguments of base.
func (s *stmt) place(n int) int {
	for _, a := range s.added {
		if a.Number > n {
			break
		}
		n++
	}
	return n
}

// CheckNamedValue implements driver.NamedValueChecker. If the base statement has none, the connection's decides, as in
// database/sql.
func (s *stmt) CheckNamedValue(v *driver.NamedValue) error {
	checker, ok := s.base.(driver.NamedValueChecker)
	if !ok {
		return s.conn.CheckNamedValue(v)
	}
	n := v.Ordinal
	v.Ordinal = s.place(n)
	err := checker.CheckNamedValue(v)
	v.Ordinal = n
	return err
}

// convertingStmt is for a base statement with a ColumnConverter, which database/sql uses instead of its default.
type convertingStmt struct{ *stmt }

var _ driver.ColumnConverter = convertingStmt{}

func (s convertingStmt) ColumnConverter(i int) driver.ValueConverter {
	return s.base.(driver.ColumnConverter).ColumnConverter(s.place(i+1) - 1)
}

// withOptional returns s with the base statement's ColumnConverter, if it has one.
func (s *stmt) withOptional() driver.Stmt {
	if _, converts := s.base.(driver.ColumnConverter); converts {
		return convertingStmt{s}
	}
	return s
}
