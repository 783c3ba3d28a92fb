package core

import (
	"context"

	"github.com/sqlfence/sqlfence/rewrite"
)

// findTakeover makes the execution one that takes rows over, if the context says so and one of the registered tables
// has claims; or it returns why it can't be.
func (e *Execution) findTakeover(ctx context.Context) error {
	if !e.registry.claims || !takesOver(ctx) {
		return nil
	}
	plan := e.rewriter().PlanFor(e.read.Query, e.read.variant|rewrite.TakesOver)
	if plan.Verdict == rewrite.Refuse {
		return e.registry.unguardable(&plan.Refusal)
	}
	e.plan = plan
	e.read.variant |= rewrite.TakesOver
	return nil
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
