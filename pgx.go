package sqlfence

import (
	"context"

	"github.com/sqlfence/sqlfence/internal/basedriver"
)

// readOptions finds the driver's options among the arguments, and runs the query
// rewriter if there is one: it sets what is read and its plan. The statement is sent as the
// rewriter has made it, unless pgx makes the same of it again. reason is why the statement can't be
// guarded; failed is the rewriter's own error.
func (e *execution) readOptions(ctx context.Context) (reason, failed error) {
	if s := e.state.settings; s.profile.NoOptions || len(s.tables) == 0 {
		return nil, nil
	}
	opts, refused := basedriver.FindOptions(e.asked.args, e.rows)
	e.read.options = opts.Count
	if refused == "" && opts.Rewrites() {
		var made basedriver.Rewritten
		made, refused, failed = opts.Rewrite(ctx, e.state.base, e.asked.query, e.asked.args)
		if failed != nil {
			return nil, failed
		}
		e.read.request, e.read.options = request{query: made.Query, args: made.Args}, made.Options
		if !made.Pure {
			e.sent = e.read.request
		}
		e.plan = e.rewriter().Plan(e.read.query)
	}
	if refused != "" {
		reason = unguardable("", refused)
	}
	return reason, nil
}
