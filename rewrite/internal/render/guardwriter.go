package render

import "github.com/sqlfence/sqlfence/internal/guard"

// A guardWriter is the writer's interface for the database folders.
type guardWriter writer

func (w *guardWriter) writer() *writer { return (*writer)(w) }

func (w *guardWriter) Write(sql string) { w.b.WriteString(sql) }

func (w *guardWriter) Int(n int64) { w.b.Int(n) }

func (w *guardWriter) Name(token int) { w.writer().field(token, fieldName) }

func (w *guardWriter) Value(token int) { w.writer().field(token, fieldValue) }

func (w *guardWriter) TypedName(token int) { w.writer().typedField(token, fieldName) }

func (w *guardWriter) TypedValue(token int) { w.writer().typedField(token, fieldValue) }

func (w *guardWriter) Tokens() (lo, hi int) { return w.lo, w.hi }

func (w *guardWriter) PresentedTokens() { w.writer().presentedTokens() }

func (w *guardWriter) Compare(c guard.Comparison, token int, stored string) {
	w.writer().compare(c, token, stored)
}

func (w *guardWriter) Throw(k guard.Kind, token int, detail string) {
	w.writer().throw(k, token, detail)
}

func (w *guardWriter) ThrowCondition(k guard.Kind, token int, detail string) {
	w.writer().throwCondition(k, token, detail)
}

func (w *guardWriter) Nonce() string { return w.Source.Nonce }

func (w *guardWriter) Table() string { return w.rules.Name }

func (w *guardWriter) Schema() string { return w.target.Prefix }

func (w *guardWriter) Ledger() string { return w.Dialect.Ledger }

func (w *guardWriter) FunctionSchema() string { return w.Dialect.functionSchema }

func (w *guardWriter) CheckLedger() { w.writer().check(SetOf(RuleLedger)) }

func (w *guardWriter) Item(token int) { w.writer().ledgerItem(token) }

func (w *guardWriter) QueryOnly() bool { return w.queryOnly }

func (w *guardWriter) Claimed() guard.ClaimColumns { return claims{w.writer()}.claimedColumns() }

func (w *guardWriter) Presented(of guard.Lookup) {
	if of == guard.OfClaim {
		w.writer().field(w.lo, fieldClaims)
	} else {
		w.writer().field(w.lo, fieldTaken)
	}
}

func (w *guardWriter) RowsText(of guard.Lookup) {
	if of == guard.OfTakenKey {
		claims{w.writer()}.rowsName()
	} else {
		claims{w.writer()}.rowsClaim()
	}
}

func (w *guardWriter) Row() guard.ClaimColumns {
	return guard.ClaimColumns{Key: w.target.Qualifier + "." + w.rules.Quoted.key, Claim: w.writer().storedText()}
}

func (w *guardWriter) KeyText() string { return w.writer().rowsKey() }

func (w *guardWriter) Spelling(token int, s guard.Spelling) {
	w.writer().field(token, fieldNumber+field(s))
}

func (w *guardWriter) ClaimedRows() { claims{w.writer()}.claimedRows() }

func (w *guardWriter) CompareClaims(row guard.ClaimColumns) { claims{w.writer()}.compareClaims(row) }
