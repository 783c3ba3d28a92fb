package rewrite

import (
	"fmt"
	"strconv"

	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/rewrite/internal/read"
)

// A claim is a row's generation, such as the attempt of a job: who raises it has taken the row over,
// and every other write proves that it is the one who has. Whatever the context presents is compared, also where
// nothing has to be presented (takeover). A token's value is compared by equality,
// as nothing is stored: a higher one was never given to anyone. NULL counts as 0.
type claim struct{ addsNothing }

func (claim) inserted(inserting, string, int32, int) bool { return true }

// assigned guards an item of a SET list that raises the claim.
func (claim) assigned(p writing, a *read.Assignment, _ bool) bool {
	return p.assignsNumber(a, p.target.rules.Claim, "claim", "assign it column + 1")
}

// claims decides what a write of rows that are there is to the claims of these: a takeover, if the
// statement raises them or the caller wants that, or one that proves them.
func (p writing) claims(w *read.Write, updates bool) bool {
	t := &p.target
	switch t.takesOver = updates && (t.setsNumber || p.takesOver); {
	case t.rules.Claim == "":
		t.takesOver = false
	case !updates && p.takesOver:
		return p.refuseTarget(w.At, "a DELETE takes over no row; present the claims of the rows to delete, or "+
			"take them over by an UPDATE first")
	case t.takesOver && (t.newKey || t.returnsKey):
		return p.refuseTarget(w.At, "it takes rows over and assigns the key column, and has no token that the new key "+
			"could be compared with; leave the key column out")
	default:
		t.proves = t.proves || !t.takesOver
	}
	return true
}

// keepsRow reports whether the update of an upsert leaves the row as it is, as one that only assigns
// the row its own key is a way to write DO NOTHING. Such a row needs no proof, unless a seal asks for one.
func (p writing) keepsRow(set *read.Assignments) bool {
	if p.target.rules.Claim == "" || p.target.rules.Sealed || set.Empty() {
		return false
	}
	for i := range set.Items {
		a := &set.Items[i]
		if !p.Assigns(*a, p.target.rules.Key) || a.Names.Hi-a.Names.Lo != 1 {
			return false
		}
		if !p.keepsKey(a) || p.target.returnsKey {
			return false
		}
	}
	return true
}

// inWhere: nothing is assigned where the row is proved.
func (claim) inWhere(t *registered, how rowWrite) bool { return t.Claim != "" && !how.takesOver }

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
	if w.dialect.presentsAtOnce(w.hi - w.lo) {
		w.dialect.guard.AmongClaims(w.forGuard(), of)
	} else {
		w.rowsClaim()
		w.amongTokens(fieldClaim)
	}
	w.write(" THEN ")
	w.bool(true)
}

// A takeover needs no token of the rows that it takes. Where the context presents one, the token is compared as for any
// other write: a caller that was replaced is refused, and doesn't become the holder again by raising the claim.
type takeover struct {
	addsNothing
	setsNothing
}

// inWhere: a row is compared where its claim is raised, so that no index loses the statement's own condition.
func (takeover) inWhere(*registered, rowWrite) bool { return false }

type takeoverText struct{ assignsNothing }

func (takeoverText) refuses(w *writer) bool { return w.rules.Claim != "" && w.compared() }

// check throws an error for a row if a token names its key, and none its generation. A token that may name the key by
// another spelling counts: a caller that was replaced must not pass because of how it writes the key.
func (takeoverText) check(w *writer) {
	w.whenClaimed(guard.OfTakenClaim)
	w.write(" WHEN ")
	if w.dialect.presentsAtOnce(w.hi - w.lo) {
		w.dialect.guard.AmongClaims(w.forGuard(), guard.OfTakenKey)
	} else {
		w.write(w.rowsKey())
		w.amongTokens(fieldKey)
	}
	w.write(" OR ")
	w.dialect.guard.SpellsKey(w.forGuard())
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
		texts[ruleTakeover].check(w)
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
	return texts[ruleTakeover].refuses(w) && !(w.dialect.guard.SetsInOrder.Is() && w.target.Changes)
}

// presentsAtOnce reports whether so many claims are one argument.
func (d *dialect) presentsAtOnce(claims int) bool {
	return d.guard.ClaimsAtOnce > 0 && claims >= d.guard.ClaimsAtOnce
}

// rowsClaim writes the row's key and generation as one text, and rowsName the key alone, with nothing behind the colon:
// no claim is that text, as each ends with a digit.
func (w *writer) rowsClaim() {
	before, between, behind := w.dialect.guard.ClaimText.Parts()
	w.write(before, w.rowsKey(), between)
	w.storedNumber()
	w.write(behind)
}

func (w *writer) rowsName() {
	before, between, behind := w.dialect.guard.ClaimText.Parts()
	w.write(before, w.rowsKey(), between, w.dialect.Text(""), behind)
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
	_, and, _ := w.dialect.Raising()
	w.storedNumber()
	w.write(and, "CASE WHEN ", w.rowsKey(), " IS NULL THEN ':' ELSE ':=' END", and, w.shownKey())
}

// inSet: the statement leaves the column to the guard, which raises it for a caller that takes over, and else shows a
// seal that it has compared it.
func (claim) inSet(t *registered, how rowWrite) bool {
	return (how.takesOver || t.Sealed) && !how.setsNumber
}

func (claimText) assigns(w *writer) {
	switch {
	case w.takesOver:
		w.writeAssigned(", ", w.rules.quoted.number)
		w.beforeTakeover()
		w.increment()
		w.behindTakeover()
	case w.sealed && w.compared():
		w.writeAssigned(", ", w.rules.quoted.number)
		w.prove()
		w.storedNumber()
	}
}
