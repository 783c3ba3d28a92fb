package render

// tail writes the clause that asks behind a query.
func (w *writer) tail() {
	switch {
	case !texts[RuleLedger].refuses(w):
	case w.rules.ClaimsOther():
		w.Dialect.Guard.ClaimsTail(w.forGuard())
	default:
		w.Dialect.Guard.LedgerTail(w.forGuard())
	}
}
