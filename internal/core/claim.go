package core

import (
	"context"

	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/rewrite"
)

// findTakeover makes the execution one that takes rows over, if the context says so and one of the registered tables
// has claims; or it returns why it can't be.
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

// planFor returns the plan for a variant besides those that were taken, or why it is refused.
func (e *Execution) planFor(v guard.Variant) (*rewrite.Plan, error) {
	plan := e.rewriter().PlanFor(e.read.Query, e.read.variant|v)
	if plan.Verdict == guard.Refuse {
		return nil, e.registry.refused(&plan.Refusal)
	}
	return plan, nil
}

// take has the execution use the plan for a variant.
func (e *Execution) take(plan *rewrite.Plan, v guard.Variant) {
	e.plan = plan
	e.read.variant |= v
}

// provesClaims reports whether the statement is nothing without a token: it writes rows with claims, and doesn't take
// them over.
func (e *Execution) provesClaims() bool {
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
