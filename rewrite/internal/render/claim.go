package render

import (
	"fmt"
	"strconv"

	"github.com/sqlfence/sqlfence/internal/guard"
)

type claimText struct{}

func (claimText) refuses(w *writer) bool { return w.rules.Claim != "" && w.compared() }

// check looks for the row's key and generation, as one text, among those of the tokens: of many rows
// with many tokens each takes one look-up. Which token is stale is found out of the refusal, by the row's key.
func (claimText) check(w *writer) {
	w.whenClaimed(guard.OfClaim)
	w.write(" ELSE ")
	w.raising(byGeneration, w.lo, w.unproven)
	w.write(" IS NOT NULL END")
	w.proveDelete()
}

// whenClaimed begins a CASE that is true for a row if a token names its key and generation.
func (w *writer) whenClaimed(of guard.Lookup) {
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

type takeoverText struct{ assignsNothing }

func (takeoverText) refuses(w *writer) bool { return w.rules.Claim != "" && w.compared() }

// check throws an error for a row if a token names its key, and none its generation. A token that may name the key by
// another spelling counts: a caller that was replaced must not pass because of how it writes the key.
func (takeoverText) check(w *writer) {
	w.whenClaimed(guard.OfTakenClaim)
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
	w.raising(byTakeover, w.lo, w.unproven)
	w.write(" IS NOT NULL ELSE ")
	w.bool(true)
	w.write(" END")
}

// beforeTakeover and behindTakeover write what stands around a value that raises the claim: the row is compared first.
func (w *writer) beforeTakeover() {
	if w.comparesTaken() {
		w.write("CASE WHEN ")
		texts[RuleTakeover].check(w)
		w.write(" THEN ")
	}
}

func (w *writer) behindTakeover() {
	if w.comparesTaken() {
		w.write(" END")
	}
}

// comparesTaken reports whether a row is compared where its claim is raised, and not before the first assignment.
func (w *writer) comparesTaken() bool {
	return texts[RuleTakeover].refuses(w) && !(w.Dialect.Guard.SetsInOrder.Is() && w.target.Changes)
}

// presentsAtOnce reports whether so many claims are one argument.
func (d *Dialect) presentsAtOnce(claims int) bool {
	return d.Guard.ClaimsAtOnce > 0 && claims >= d.Guard.ClaimsAtOnce
}

// rowsClaim writes the row's key and generation as one text, and rowsName the key alone, with nothing behind the colon:
// no claim is that text, as each ends with a digit.
func (w *writer) rowsClaim() {
	before, between, behind := w.Dialect.Guard.ClaimText.Parts()
	w.write(before, w.rowsKey(), between)
	w.storedNumber()
	w.write(behind)
}

func (w *writer) rowsName() {
	before, between, behind := w.Dialect.Guard.ClaimText.Parts()
	w.write(before, w.rowsKey(), between, w.Dialect.Text(""), behind)
}

// presented returns the tokens' claims as the names of a JSON object, which the databases look up without reading
// all of them; named adds the keys, as rowsName writes them, with the tokens' values, and with a number sign behind
// them the plain spellings of keys that are spelled otherwise.
func presented(tokens []Token, named bool) string {
	b := make([]byte, 0, 48*len(tokens)+2)
	for i := range tokens {
		b = append(b, separators[min(i, 1)])
		b = append(b, '"')
		b = appendQuoted(b, tokens[i].Key)
		b = append(b, ':')
		b = strconv.AppendInt(b, tokens[i].Value, 10)
		b = append(b, `":0`...)
		if named {
			b = append(b, `,"`...)
			b = appendQuoted(b, tokens[i].Key)
			b = append(b, `:":`...)
			b = strconv.AppendInt(b, tokens[i].Value, 10)
			if plain := plainKey(tokens[i].Key); plain != tokens[i].Key {
				b = append(b, `,"`...)
				b = appendQuoted(b, plain)
				b = append(b, `:#":`...)
				b = strconv.AppendInt(b, tokens[i].Value, 10)
			}
		}
	}
	return string(append(b, '}'))
}

const separators = "{,"

// appendQuoted appends what stands between the quotes of a text in JSON.
func appendQuoted(b []byte, s string) []byte {
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"', c == '\\':
			b = append(b, '\\', c)
		case c < ' ':
			b = fmt.Appendf(b, `\u%04x`, c)
		default:
			b = append(b, c)
		}
	}
	return b
}

// unproven writes what is raised for a row without a proof: its generation, and its key, or NULL. No token names a
// row with a key that is NULL, and one may name an empty key.
func (w *writer) unproven() {
	_, and, _ := w.Dialect.Raising()
	w.storedNumber()
	w.write(and, "CASE WHEN ", w.rowsKey(), " IS NULL THEN ':' ELSE ':=' END", and, w.shownKey())
}

func (claimText) assigns(w *writer) {
	switch {
	case w.TakesOver:
		w.writeAssigned(", ", w.rules.Quoted.number)
		w.beforeTakeover()
		w.increment()
		w.behindTakeover()
	case w.sealed && w.compared():
		w.writeAssigned(", ", w.rules.Quoted.number)
		w.prove()
		w.storedNumber()
	}
}
