package rewrite

// WithLedgerFunction returns a rewriter for the same tables. On PostgreSQL its guards call the function that
// package tokens installs in this schema, and those of r the one that the session's search path leads to. It has a
// cache of its own, and is safe for concurrent use. For other databases it is r.
//
// The schema is a name as the database stores it.
func (r *Rewriter) WithLedgerFunction(schema string) *Rewriter {
	if r.dialect == nil {
		return r
	}
	return r.speaking(r.dialect.withLedgerFunction(schema))
}

// Wrote reports whether a plan with a guard is the rewriter's, and not that of one for the same tables that asks the
// ledger in another way.
func (r *Rewriter) Wrote(p *Plan) bool { return p.source.dialect == r.dialect }

// WithLedgerSchema returns a rewriter for the same tables. Its guards ask the ledger of this
// schema, or in MySQL of this database, wherever the session finds names without one. It has a
// cache of its own, and is safe for concurrent use. On SQLite, where each file has a ledger for its
// tables, it is r.
//
// The schema is a name as the database stores it.
func (r *Rewriter) WithLedgerSchema(schema string) *Rewriter {
	if r.dialect == nil {
		return r
	}
	return r.speaking(r.dialect.withLedgerSchema(schema))
}

// speaking returns the rewriter with guards in another form.
func (r *Rewriter) speaking(says *dialect) *Rewriter {
	if says == r.dialect {
		return r
	}
	with := *r
	with.dialect, with.plans = says, newPlans()
	return &with
}
