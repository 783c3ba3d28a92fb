package core

import (
	"context"

	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/rewrite"
)

// findTakeover plans the statement to claim rows if the context comes from [WithTakeover], or returns why the statement
// can't claim rows.
func (e *Execution) findTakeover(ctx context.Context) error {
	if !takesOver(ctx) {
		return nil
	}
	plan, err := e.planFor(guard.TakesOver)
	if err != nil {
		return err
	}
	e.take(plan, guard.TakesOver)
	return nil
}

// planFor returns the statement's plan for the execution's plan kind and v, or why the statement is refused.
func (e *Execution) planFor(v guard.PlanKind) (*rewrite.Plan, error) {
	plan := e.rewriter().PlanFor(e.read.Query, e.read.planKind|v)
	if plan.Verdict == guard.Refuse {
		return nil, e.registry.refused(&plan.Refusal)
	}
	return plan, nil
}

// take makes the execution use a plan that planFor returned for v.
func (e *Execution) take(plan *rewrite.Plan, v guard.PlanKind) {
	e.plan = plan
	e.read.planKind |= v
}

// presentsClaims reports whether the guard needs a token of the context because the statement writes rows of a table
// with Claim without claiming them.
func (e *Execution) presentsClaims() bool {
	if !e.registry.claims {
		return false
	}
	for i := range e.plan.Tables {
		if e.table(i).Rules.Claim != "" && e.needsToken(i) {
			return true
		}
	}
	return false
}
