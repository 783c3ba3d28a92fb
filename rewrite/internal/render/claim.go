package render

import (
	"github.com/sqlfence/sqlfence/internal/guard"
)

// A claims writes of claims, of the row's own and of another table's.
type claims struct{ *writer }

type claim struct{}

func (claim) refuses(w *writer) bool { return w.compared() }

// check looks for the row's key and generation, as one text, among those of the tokens: of many rows
// with many tokens each takes one look-up. Which token is stale is found out of the refusal, by the row's key.
func (claim) check(w *writer) {
	claims{w}.whenClaimed(guard.OfClaim)
	w.write(" ELSE ")
	w.raising(byGeneration, w.lo, claims{w}.unproven)
	w.write(" IS NOT NULL END")
	w.proveDelete()
}

// whenClaimed begins a CASE that is true for a row if a token names its key and generation.
func (w claims) whenClaimed(of guard.Lookup) {
	if w.isNoInteger("CASE WHEN ", " THEN ") {
		w.raiseNoInteger()
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

// check throws an error for a row if a token names its key, and none its generation. A token that may name the key by
// another spelling counts: a caller that was replaced must not pass because of how it writes the key.
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
	w.raising(byTakeover, w.lo, claims{w}.unproven)
	w.write(" IS NOT NULL ELSE ")
	w.bool(true)
	w.write(" END")
}

// rowsClaim writes the row's key and generation as one text, and rowsName the key alone, with nothing behind the colon:
// no claim is that text, as each ends with a digit.
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

// unproven writes what is raised for a row without a proof: its generation, and its key, or NULL. No token names a
// row with a key that is NULL, and one may name an empty key.
func (w claims) unproven() {
	_, and, _ := w.Dialect.Raising()
	w.storedNumber()
	w.write(and, "CASE WHEN ", w.rowsKey(), " IS NULL THEN ':' ELSE ':=' END", and, w.shownKey())
}

func (claim) assigns(w *writer) {
	w.writeAssigned(", ", w.rules.Quoted.number)
	numbers{w}.beforeTakeover()
	numbers{w}.increment()
	numbers{w}.behindTakeover()
}
