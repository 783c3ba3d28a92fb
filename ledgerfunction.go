package sqlfence

import (
	"context"

	"github.com/sqlfence/sqlfence/internal/session"
	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/internal/trusted"
	"github.com/sqlfence/sqlfence/rewrite"
)

// A callingRewriter writes guards that ask the ledger by the function of a schema.
type callingRewriter struct {
	schema string
	*rewrite.Rewriter
}

// rewriter returns the rewriter for the connection's statements.
func (s *connState) rewriter() *rewrite.Rewriter {
	schema := s.found.Function()
	if schema == "" {
		return s.settings.rewriter
	}
	calling := s.found.calling.Load()
	if calling == nil || calling.schema != schema {
		calling = &callingRewriter{schema, s.settings.rewriter.WithLedgerFunction(schema)}
		s.found.calling.Store(calling)
	}
	return calling.Rewriter
}

// rewriter returns the rewriter for the execution's registry. That of the enforced tables
// alone does without the function.
func (e *execution) rewriter() *rewrite.Rewriter {
	if e.registry == &e.state.settings.registry {
		return e.state.rewriter()
	}
	return e.registry.rewriter
}

// planAgain makes the plan, also of a prepared statement, by another rewriter for the same tables.
func (e *execution) planAgain(r *rewrite.Rewriter) {
	if e.plan.Versioned {
		e.plan = r.VersionedPlan(e.read.query)
	} else {
		e.plan = r.Plan(e.read.query)
	}
	if stmt := e.asked.stmt; stmt != nil && e.registry == &e.state.settings.registry {
		stmt.plan = r.Plan(stmt.query)
	}
}

// changesDatabase has what was found in the database looked for again after a statement of
// sqlfence's own that may have changed it.
func (s *connState) changesDatabase(ctx context.Context, query string) {
	if !trusted.Is(ctx, query) {
		return
	}
	if s.settings.sealed && sqltext.ChangesSeal(query) {
		s.found.Forget(session.Seals)
	}
	if query == sqltext.CreateLedgerFunction {
		s.found.LookForFunction()
	}
}
