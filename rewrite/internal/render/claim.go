package render

import (
	"github.com/sqlfence/sqlfence/internal/guard"
)

// claims writes the SQL about claims: the row's claim, and claims in another table.
type claims struct{ *writer }

type claim struct{}

func (claim) refuses(w *writer) bool { return w.compared() }

// check writes a condition that looks for the row's key and claim value, as one text, among the keys and values of the
// tokens. So even with many rows and many tokens each row takes one look-up. After a refusal, the row's key shows which
// token is stale.
func (claim) check(w *writer) {
	claims{w}.whenClaimed(guard.OfClaim)
	w.write(" ELSE ")
	w.throwDetail(byRowClaim, w.lo, claims{w}.unproven)
	w.write(" IS NOT NULL END")
	w.presentDelete()
}

// whenClaimed begins a CASE that is true for a row if a token has the row's key and claim value.
func (w claims) whenClaimed(of guard.Lookup) {
	if w.isNoInteger("CASE WHEN ", " THEN ") {
		w.throwNoInteger()
		w.write(" IS NOT NULL WHEN ")
	} else {
		w.write("CASE WHEN ")
	}
	if w.Dialect.presentsAtOnce(w.hi - w.lo) {
		w.Dialect.Guard.AmongClaims(w.forGuard(), of)
	} else {
		w.rowsClaim()
		w.amongTokens(fieldClaim)
	}
	w.write(" THEN ")
	w.bool(true)
}

type takeover struct{ assignsNothing }

func (takeover) refuses(w *writer) bool { return w.compared() }

// check writes a condition that throws an error for a row if a token names the row's key, and no token has the row's
// claim value. A token counts even if it may spell the key differently: a caller that has lost its claim must not pass
// because of the spelling of its key.
func (takeover) check(w *writer) {
	claims{w}.whenClaimed(guard.OfTakenClaim)
	w.write(" WHEN ")
	if w.Dialect.presentsAtOnce(w.hi - w.lo) {
		w.Dialect.Guard.AmongClaims(w.forGuard(), guard.OfTakenKey)
	} else {
		w.write(w.rowsKey())
		w.amongTokens(fieldKey)
	}
	w.write(" OR ")
	w.Dialect.Guard.SpellsKey(w.forGuard())
	w.write(" THEN ")
	w.throwDetail(byTakeover, w.lo, claims{w}.unproven)
	w.write(" IS NOT NULL ELSE ")
	w.bool(true)
	w.write(" END")
}

// rowsClaim writes the row's key and claim value as one text, and rowsName the key and a colon. No claim equals the
// text of rowsName, because each claim ends with a digit.
func (w claims) rowsClaim() {
	before, between, behind := w.Dialect.Guard.ClaimText.Parts()
	w.write(before, w.rowsKey(), between)
	w.storedNumber()
	w.write(behind)
}

func (w claims) rowsName() {
	before, between, behind := w.Dialect.Guard.ClaimText.Parts()
	w.write(before, w.rowsKey(), between, w.Dialect.Text(""), behind)
}

// unproven writes the details in the error for a row without a matching token: the row's claim value, then := and its
// key; if the key is NULL, a colon instead of := and the key. No token names a NULL key, but a token may name an empty
// key.
func (w claims) unproven() {
	_, and, _ := w.Dialect.Throwing()
	w.storedNumber()
	w.write(and, "CASE WHEN ", w.rowsKey(), " IS NULL THEN ':' ELSE ':=' END", and, w.shownKey())
}

func (claim) assigns(w *writer) {
	w.writeAssigned(", ", w.rules.Quoted.number)
	numbers{w}.beforeTakeover()
	numbers{w}.increment()
	numbers{w}.afterTakeover()
}
