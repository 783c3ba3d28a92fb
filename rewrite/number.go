package rewrite

import (
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/rewrite/internal/read"
)

// A row may have a number that only rises: its serial, or the generation of its claim. NULL counts
// as 0. A statement may assign it itself, as applications do that compare it in their own WHERE. The
// value is guarded where it stands, so that it is evaluated once: the row's number has to rise.

// assignsNumber guards an item of a SET list that assigns a column of this name; what says what the
// column is, and instead what to write.
func (p writing) assignsNumber(a *read.Assignment, column, what, instead string) bool {
	t := &p.target
	if !p.Assigns(*a, column) {
		return true
	}
	value, ok := p.Value(*a, column)
	switch {
	case t.setsNumber:
		return p.refuseTarget(a.Lo, "it assigns the "+what+" column twice; "+instead)
	case !ok:
		return p.refuseTarget(a.Lo, "the value for the "+what+" column isn't an expression of its own; write column = "+
			"value, or "+instead)
	case value.Lo+1 == value.Hi && p.Word(value.Lo, "default"):
		return p.refuseTarget(value.Lo, "DEFAULT would set the "+what+" back; "+instead)
	}
	t.setsNumber = true
	table := p.to().Table
	p.assigns = append(p.assigns, make([]bool, max(0, table+1-len(p.assigns)))...)
	p.assigns[table] = true
	p.insert(p.Offset(value.Lo), opBeforeAssigned, 0, "")
	p.insert(p.After(value.Hi), opBehindAssigned, 0, "")
	return true
}

// beforeAssigned writes what stands before the value that the statement assigns to
// the number, and behindAssigned what stands behind it. Together they raise unless that
// is higher than the row's. Both are compared as integers, as it is stored: 7.4
// doesn't raise 7.
func (w *writer) beforeAssigned() {
	if w.lacksSerial() {
		w.write("COALESCE(")
		w.raiseNumber(guard.Required)
		w.write(", (")
		return
	}
	w.beforeTakeover()
	if w.isNoInteger("CASE WHEN ", " THEN ") {
		w.raiseNoInteger()
		w.write(" ELSE ")
	}
	d := w.dialect.guard
	w.write("COALESCE(", d.Unless.Before, d.Greatest.Before, d.Assigned.Before)
}

func (w *writer) behindAssigned() {
	if w.lacksSerial() {
		w.write("))")
		return
	}
	_, between, behind := w.dialect.guard.Assigned.Parts()
	_, and, end := w.dialect.guard.Greatest.Parts()
	cast := w.dialect.Cast(sqltext.Bigint)
	w.write(between, w.target.qualifier, ".", w.rules.quoted.number, behind, and)
	w.storedNumber()
	_, than, unless := w.dialect.guard.Unless.Parts()
	w.write(cast, end, than)
	w.storedNumber()
	w.write(cast, unless, ", ")
	w.raiseNumber(guard.Assigned)
	w.write(")")
	if texts[ruleEditLock].refuses(w) && !w.dialect.guard.SetsInOrder.Is() {
		w.operator("+")
		w.write("CASE WHEN ")
		w.check(allRules &^ setOf(ruleLedger))
		w.write(" THEN 0 END")
	}
	if before, _ := w.dialect.guard.NotInteger.Ends(); before != "" {
		w.write(" END")
	}
	w.behindTakeover()
}

// maxNumber is the highest one; SQLite would go on in floating point.
const maxNumber = "9223372036854775807"

// increment writes the row's number and 1. The sum of a text and 1 would be a number,
// too.
func (w *writer) increment() {
	checked := w.isNoInteger("CASE WHEN ", " OR ")
	if checked {
		w.storedNumber()
		w.write(" = ", maxNumber, " THEN ")
		w.raiseNoInteger()
		w.write(" ELSE ")
	}
	w.storedNumber()
	w.operator("+")
	w.write("1")
	if checked {
		w.write(" END")
	}
}

// isNoInteger writes the condition that the row's number is none, between two texts;
// where that can't be it writes nothing, and returns false.
func (w *writer) isNoInteger(first, last string) bool {
	before, behind := w.dialect.guard.NotInteger.Ends()
	if before == "" {
		return false
	}
	w.write(first, before, w.target.qualifier, ".", w.rules.quoted.number, behind, last)
	return true
}

// raiseNoInteger raises for what isNoInteger holds for.
func (w *writer) raiseNoInteger() {
	w.raise(guard.NotSerial, w.table, "substr(", w.target.qualifier, ".", w.rules.quoted.number, ", 1, 40)")
}

// storedNumber writes the row's number, which is never NULL. Below 0 it was written for a seal that wasn't there, and
// counts by its size.
func (w *writer) storedNumber() { w.write(w.storedText()) }

func (w *writer) storedText() string {
	before, behind := "COALESCE(", ", 0)"
	if w.rules.Claim != "" && w.rules.Sealed {
		before, behind = w.dialect.guard.Size.Ends()
	}
	return before + w.target.qualifier + "." + w.rules.quoted.number + behind
}

// raiseNumber raises with the row's number where it is assigned.
func (w *writer) raiseNumber(kind guard.Kind) {
	rule := ruleSerial
	if w.rules.Claim != "" {
		rule = ruleClaim
	}
	w.raiseFor(rule, kind, w.rules.quoted.number, "COALESCE(", w.target.qualifier, ".", w.rules.quoted.number, ", 0)")
}
