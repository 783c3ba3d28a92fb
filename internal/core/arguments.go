package core

import (
	"context"

	"github.com/sqlfence/sqlfence/internal/basedriver"
)

// readOptions finds the driver's options among the arguments, runs a query rewriter among the options, and plans the
// rewritten statement. The rewritten statement is sent, unless pgx itself computes the same statement again. reason is
// why the statement can't be guarded; failed is the rewriter's own error.
func (e *Execution) readOptions(ctx context.Context) (reason, failed error) {
	if s := e.conn.settings; s.profile.NoOptions || len(s.tables) == 0 {
		return nil, nil
	}
	opts, refused := basedriver.FindOptions(e.request.Args, e.rows)
	e.read.options = opts.Count
	if refused == "" && opts.Rewrites() {
		var made basedriver.Rewritten
		made, refused, failed = e.conn.adapter.Rewrite(ctx, opts, e.request.Query, e.request.Args)
		if failed != nil {
			return nil, failed
		}
		e.read.Request, e.read.options = Request{Query: made.Query, Args: made.Args}, made.Options
		if !made.Pure {
			e.sent = e.read.Request
		}
		e.plan = e.rewriter().Plan(e.read.Query)
	}
	if refused != "" {
		reason = e.registry.unguardable(nil, "", refused)
	}
	return reason, nil
}
