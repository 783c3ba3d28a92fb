package sqlfence

//lint:file-ignore SA1019 base drivers may have nothing newer than what is deprecated

import (
	"context"
	"database/sql/driver"

	"github.com/sqlfence/sqlfence/internal/own"
	"github.com/sqlfence/sqlfence/rewrite"
)

var (
	_ driver.Stmt             = (*stmt)(nil)
	_ driver.StmtExecContext  = (*stmt)(nil)
	_ driver.StmtQueryContext = (*stmt)(nil)
)

// stmt is a prepared statement that concerns a registered table. The token is
// only known when it is executed, so it holds the base driver's statement for
// one form of its text, and prepares another when an execution needs that. For
// one token at a time passed as an argument, which is the usual, it never does.
type stmt struct {
	guard  *guard
	query  string
	plan   *rewrite.Plan
	inputs int // as NumInput

	base driver.Stmt
	sql  string // what base was prepared from
}

// prepare prepares the default form of a statement.
func prepare(ctx context.Context, g *guard, query string, plan *rewrite.Plan) (*stmt, error) {
	s := &stmt{guard: g, query: query, plan: plan}
	if _, ok := serialFrom(ctx); ok && g.fence.serials && plan.Verdict == rewrite.Guard {
		// It is likely to be executed with a serial, too.
		plan = g.fence.rewriter.VersionedPlan(query)
	}
	usual, added := query, 0
	_, bypassed := bypassReason(ctx)
	switch {
	case bypassed, own.Is(ctx, query):
	case g.fence.mode == Observe && plan.Verdict == rewrite.Guard:
		// An error of the guard's must not be the application's: see observe.
	case plan.Verdict == rewrite.Refuse:
		if err := g.fence.unpreparable(ctx, query, g.fence.unguardable(plan.Refusal)); err != nil {
			return nil, err
		}
	case plan.Params:
		r, err := plan.Default()
		if err == nil {
			usual, added = r.SQL, len(r.Args)
		} else if err := g.fence.unpreparable(ctx, query, g.fence.unrendered(err)); err != nil {
			return nil, err
		}
	}
	if err := s.use(ctx, usual); err != nil {
		return nil, err
	}
	switch s.inputs = s.base.NumInput(); {
	case s.inputs >= 0:
		s.inputs -= added
	case added > 0 && g.fence.profile.dialect == SQLite && !g.fence.profile.uncounted:
		// The guard numbers the placeholders, and a driver may leave the counting of
		// those to its bindings. database/sql has to do it, or a missing argument is NULL.
		s.inputs = plan.Inputs
	}
	return s, nil
}

// unpreparable reports a refusal and returns err; or nil where nothing is
// enforced, and the executions report what would have been.
func (f *fence) unpreparable(ctx context.Context, query string, err error) error {
	a := attempt{fence: f, query: query}
	return a.refuse(ctx, err)
}

// use sees to it that base is prepared from sql.
func (s *stmt) use(ctx context.Context, sql string) error {
	if s.base != nil && s.sql == sql {
		return nil
	}
	base, err := prepareBase(ctx, s.guard.base, sql)
	if err != nil {
		return err
	}
	old := s.base
	s.base, s.sql = base, sql
	if old == nil {
		return nil
	}
	return old.Close()
}

// Close implements driver.Stmt.
func (s *stmt) Close() error { return s.base.Close() }

// NumInput implements driver.Stmt: the application's own arguments.
func (s *stmt) NumInput() int { return s.inputs }

// Exec implements driver.Stmt.
func (s *stmt) Exec(args []driver.Value) (driver.Result, error) {
	return s.ExecContext(context.Background(), named(args))
}

// Query implements driver.Stmt.
func (s *stmt) Query(args []driver.Value) (driver.Rows, error) {
	return s.QueryContext(context.Background(), named(args))
}

// ExecContext implements driver.StmtExecContext.
func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	a, err := s.guard.fence.admit(ctx, s.guard.base, s.query, s.plan, args, preparedForm)
	if err != nil {
		return nil, err
	}
	if !a.guarded() {
		res, err := s.exec(ctx, &a)
		s.guard.followTx(a.sql, err)
		a.tell(ctx, err)
		return res, err
	}
	return s.guard.exec(ctx, a, func(a *attempt) (driver.Result, error) { return s.exec(ctx, a) })
}

// QueryContext implements driver.StmtQueryContext.
func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	a, err := s.guard.fence.admit(ctx, s.guard.base, s.query, s.plan, args, preparedQueryForm)
	if err != nil {
		return nil, err
	}
	if !a.guarded() {
		rows, err := s.rows(ctx, &a)
		s.guard.followTx(a.sql, err)
		a.tell(ctx, err)
		return rows, err
	}
	return s.guard.query(ctx, a, func(a *attempt) (driver.Rows, error) { return s.rows(ctx, a) })
}

func (s *stmt) exec(ctx context.Context, a *attempt) (driver.Result, error) {
	if a.moved {
		return execBase(ctx, s.guard.base, a.sql, a.args)
	}
	if err := s.use(ctx, a.sql); err != nil {
		return nil, err
	}
	if base, ok := s.base.(driver.StmtExecContext); ok {
		return base.ExecContext(ctx, a.args)
	}
	values, err := plain(ctx, a.args)
	if err != nil {
		return nil, err
	}
	return s.base.Exec(values)
}

func (s *stmt) rows(ctx context.Context, a *attempt) (driver.Rows, error) {
	if a.moved {
		return queryBase(ctx, s.guard.base, a.sql, a.args)
	}
	if err := s.use(ctx, a.sql); err != nil {
		return nil, err
	}
	if base, ok := s.base.(driver.StmtQueryContext); ok {
		return base.QueryContext(ctx, a.args)
	}
	values, err := plain(ctx, a.args)
	if err != nil {
		return nil, err
	}
	return s.base.Query(values)
}
