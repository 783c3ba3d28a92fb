package rewrite

// WithLedgerFunction returns a rewriter for the same tables. Its guards ask the ledger by the
// stored function that package tokens installs, in this schema, instead of by queries of their own:
// PostgreSQL plans and executes them at less cost. Verdicts, arguments and markers are the same. It
// has a cache of its own, and is safe for concurrent use. For a database without such a function it
// is r.
//
// The schema is a name as the database stores it. It must be known to have the function, as
// sent by sqlfence's root package: [Plan.Render] can't see whether it is there.
func (r *Rewriter) WithLedgerFunction(schema string) *Rewriter {
	if r.dialect == nil {
		return r
	}
	return r.speaking(r.dialect.withLedgerFunction(schema))
}

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
