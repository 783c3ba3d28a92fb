package sqlfence

//lint:file-ignore SA1019 base drivers may have nothing newer than what is deprecated

import (
	"context"
	"database/sql/driver"

	"github.com/sqlfence/sqlfence/internal/basedriver"
	"github.com/sqlfence/sqlfence/internal/session"
	"github.com/sqlfence/sqlfence/rewrite"
)

var (
	_ driver.Stmt             = (*stmt)(nil)
	_ driver.StmtExecContext  = (*stmt)(nil)
	_ driver.StmtQueryContext = (*stmt)(nil)
)

// stmt is a prepared statement that may need a guard. The token is only known when
// it is executed, so it holds the base driver's statement for one form of its text,
// and prepares another when an execution needs that. In the default form, with one
// token for each table passed as an argument, it never does.
type stmt struct {
	state  *connState
	query  string
	plan   *rewrite.Plan
	inputs int // as NumInput

	base  driver.Stmt
	text  string        // what base was prepared from
	added []rewrite.Arg // the guard's among its arguments
}

// prepare prepares the default form of a statement.
func prepare(ctx context.Context, state *connState, query string, plan *rewrite.Plan) (*stmt, error) {
	s := &stmt{state: state, query: query, plan: plan}
	text, added, err := s.defaultForm(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.use(ctx, text, added); err != nil {
		if fact := state.found.Wrong(err, session.Written{Query: text}); fact == session.Function {
			state.found.Forget(fact)
			if state.endsTx() {
				return nil, &outdated{fact, err}
			}
			return prepare(ctx, state, query, state.settings.rewriter.Plan(query))
		}
		if refused := state.refuses(ctx); refused != nil {
			return nil, refused
		}
		e := s.execution(nil, false)
		return nil, e.explain(ctx, err)
	}
	profile := state.settings.profile
	switch s.inputs = s.base.NumInput(); {
	case s.inputs >= 0:
		s.inputs -= len(added)
	case len(added) > 0 && !profile.checksArgCount() && !profile.SkipsArgCheck:
		// The guard numbers the placeholders, and a driver may leave the counting of
		// those to its bindings. database/sql has to do it, or a missing argument is NULL.
		s.inputs = plan.Inputs
	}
	return s, nil
}

// defaultForm returns the text to prepare, and the arguments that the guard adds to
// the statement's own; or why nothing may be prepared.
func (s *stmt) defaultForm(ctx context.Context) (text string, added []rewrite.Arg, err error) {
	settings, e := s.state.settings, s.execution(nil, false)
	if _, ok := serialFrom(ctx); ok && settings.serials && e.plan.Verdict == rewrite.Guard {
		// It is likely to be executed with a serial, too.
		e.plan = e.rewriter().VersionedPlan(s.query)
	}
	if decided, err := e.admit(ctx); decided != guarded {
		return e.sent.query, nil, err
	}
	var reason error
	switch {
	case e.observes(): // an error of the guard's must not be the application's: see observe
		return s.query, nil, nil
	case e.plan.Verdict == rewrite.Refuse:
		reason = settings.unguardable(&e.plan.Refusal)
	case e.plan.Several > 0:
		reason = settings.several(e.plan)
	case !e.plan.Params:
		return s.query, nil, nil
	default:
		r, err := e.plan.Default()
		if err == nil {
			return r.SQL, r.Args, nil
		}
		reason = settings.unrendered(err)
	}
	return s.query, nil, e.refusePrepared(ctx, reason)
}

// use prepares base from text, which the guard adds arguments to, unless it was prepared from it.
func (s *stmt) use(ctx context.Context, text string, added []rewrite.Arg) error {
	if s.base != nil && s.text == text {
		return nil
	}
	base, err := basedriver.Prepare(ctx, s.state.base, text)
	if err != nil {
		return err
	}
	old := s.base
	s.base, s.text, s.added = base, text, added
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
	return s.ExecContext(context.Background(), basedriver.Named(args))
}

// Query implements driver.Stmt.
func (s *stmt) Query(args []driver.Value) (driver.Rows, error) {
	return s.QueryContext(context.Background(), basedriver.Named(args))
}

// ExecContext implements driver.StmtExecContext.
func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return execute(ctx, s.execution(args, false), execCall)
}

// QueryContext implements driver.StmtQueryContext.
func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return execute(ctx, s.execution(args, true), queryCall)
}

func (s *stmt) execution(args []driver.NamedValue, rows bool) execution {
	return execution{state: s.state, registry: &s.state.settings.registry, rows: rows, plan: s.plan, asked: request{query: s.query, args: args, stmt: s}}
}

// exec executes the base statement for this request.
func (s *stmt) exec(ctx context.Context, r *request) (driver.Result, error) {
	if err := s.use(ctx, r.query, r.added); err != nil {
		return nil, err
	}
	return basedriver.ExecStmt(ctx, s.base, r.args)
}

// rows queries by the base statement for this request.
func (s *stmt) rows(ctx context.Context, r *request) (driver.Rows, error) {
	if err := s.use(ctx, r.query, r.added); err != nil {
		return nil, err
	}
	return basedriver.QueryStmt(ctx, s.base, r.args)
}

// place returns the number, among the arguments of base, of the application's own
// argument n.
func (s *stmt) place(n int) int {
	for _, a := range s.added {
		if a.Number > n {
			break
		}
		n++
	}
	return n
}

// checkedStmt is for a base statement that checks its arguments itself.
type checkedStmt struct{ *stmt }

var _ driver.NamedValueChecker = checkedStmt{}

// CheckNamedValue implements driver.NamedValueChecker.
func (s checkedStmt) CheckNamedValue(v *driver.NamedValue) error {
	n := v.Ordinal
	v.Ordinal = s.place(n)
	err := s.base.(driver.NamedValueChecker).CheckNamedValue(v)
	v.Ordinal = n
	return err
}

// convertingStmt is for a base statement that says how to convert arguments.
type convertingStmt struct{ *stmt }

var _ driver.ColumnConverter = convertingStmt{}

// ColumnConverter implements driver.ColumnConverter.
func (s convertingStmt) ColumnConverter(i int) driver.ValueConverter {
	return s.base.(driver.ColumnConverter).ColumnConverter(s.place(i+1) - 1)
}

// A bothStmt is for a base statement that does either.
type bothStmt struct{ checkedStmt }

var _ driver.ColumnConverter = bothStmt{}

// ColumnConverter implements driver.ColumnConverter.
func (s bothStmt) ColumnConverter(i int) driver.ValueConverter {
	return convertingStmt{s.stmt}.ColumnConverter(i)
}

// withOptional returns s with the base statement's optional interfaces. Without
// one of them database/sql turns to the connection's NamedValueChecker, or to
// its own default.
func (s *stmt) withOptional() driver.Stmt {
	_, checks := s.base.(driver.NamedValueChecker)
	_, converts := s.base.(driver.ColumnConverter)
	switch {
	case checks && converts:
		return bothStmt{checkedStmt{s}}
	case checks:
		return checkedStmt{s}
	case converts:
		return convertingStmt{s}
	}
	return s
}
