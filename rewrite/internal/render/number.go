package render

import (
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// numbers writes the SQL that compares and increments the number of a row: its version (Serial) or its claim.
type numbers struct{ *writer }

// beforeAssigned writes the SQL before the value that the statement assigns to the serial or claim column, and
// afterAssigned writes the SQL after the value. Together they throw an error unless the value is higher than the row's.
// Both numbers are compared as integers, the stored type: 7.4 doesn't increase 7.
func (w numbers) beforeAssigned() {
	if w.lacksSerial() {
		w.write("COALESCE(")
		w.throwNumber(guard.Required)
		w.write(", (")
		return
	}
	w.beforeTakeover()
	if w.isNoInteger("CASE WHEN ", " THEN ") {
		w.throwNoInteger()
		w.write(" ELSE ")
	}
	d := w.Dialect.Guard
	w.write("COALESCE(", d.Unless.Before, d.Greatest.Before, d.Assigned.Before)
}

func (w numbers) afterAssigned() {
	if w.lacksSerial() {
		w.write("))")
		return
	}
	_, between, behind := w.Dialect.Guard.Assigned.Parts()
	_, and, end := w.Dialect.Guard.Greatest.Parts()
	cast := w.Dialect.Cast(sqltext.Bigint)
	w.write(between, w.target.Qualifier, ".", w.rules.Quoted.number, behind, and)
	w.storedNumber()
	_, than, unless := w.Dialect.Guard.Unless.Parts()
	w.write(cast, end, than)
	w.storedNumber()
	w.write(cast, unless, ", ")
	w.throwNumber(guard.Assigned)
	w.write(")")
	if w.refuses(SetOf(RuleEditLock)) && !w.Dialect.Guard.SetsInOrder.Is() {
		w.operator("+")
		w.write("CASE WHEN ")
		w.check(AllRules &^ SetOf(RuleLedger))
		w.write(" THEN 0 END")
	}
	if before, _ := w.Dialect.Guard.NotInteger.Ends(); before != "" {
		w.write(" END")
	}
	w.afterTakeover()
}

// maxNumber is the highest number of a row; SQLite would continue in floating point.
const maxNumber = "9223372036854775807"

// increment writes the row's number plus 1. For a text the sum would also be a number.
func (w numbers) increment() {
	checked := w.isNoInteger("CASE WHEN ", " OR ")
	if checked {
		w.storedNumber()
		w.write(" = ", maxNumber, " THEN ")
		w.throwNoInteger()
		w.write(" ELSE ")
	}
	w.storedNumber()
	w.operator("+")
	w.write("1")
	if checked {
		w.write(" END")
	}
}

// isNoInteger writes, between two texts, the condition that the row's serial or claim is no integer. If the database
// only stores integers there, isNoInteger writes nothing, and returns false.
func (w *writer) isNoInteger(first, last string) bool {
	before, behind := w.Dialect.Guard.NotInteger.Ends()
	if before == "" {
		return false
	}
	w.write(first, before, w.target.Qualifier, ".", w.rules.Quoted.number, behind, last)
	return true
}

// throwNoInteger writes an expression that throws the error for a number that isn't an integer.
func (w *writer) throwNoInteger() {
	w.throw(guard.NotSerial, w.table, "substr(", w.target.Qualifier, ".", w.rules.Quoted.number, ", 1, 40)")
}

// storedNumber writes the row's serial or claim, 0 for NULL. A negative claim counts by its absolute value: a write
// presents it to a seal, and if the seal is missing, it stays negative.
func (w *writer) storedNumber() { w.write(w.storedText()) }

func (w *writer) storedText() string {
	before, behind := "COALESCE(", ", 0)"
	if w.rules.Claim != "" && w.rules.Sealed {
		before, behind = w.Dialect.Guard.Size.Ends()
	}
	return before + w.target.Qualifier + "." + w.rules.Quoted.number + behind
}

// throwNumber writes, in the place of an assigned value, an expression that throws an error with the row's number.
func (w numbers) throwNumber(kind guard.Kind) {
	rule := RuleSerial
	if w.rules.Claim != "" {
		rule = RuleClaim
	}
	w.throwFor(rule, kind, w.rules.Quoted.number, "COALESCE(", w.target.Qualifier, ".", w.rules.Quoted.number, ", 0)")
}

// lacksSerial reports whether the guard throws an error if an upsert would update, because the caller presents no
// version by WithSerial.
func (w numbers) lacksSerial() bool {
	return w.rules.SerialRequired && !w.target.Changes && !w.Plan.Versioned
}

// beforeTakeover and afterTakeover surround a value that increments the claim with a CASE that first compares the row.
func (w numbers) beforeTakeover() {
	if w.comparesTaken() {
		w.write("CASE WHEN ")
		texts[RuleTakeover].check(w.writer)
		w.write(" THEN ")
	}
}

func (w numbers) afterTakeover() {
	if w.comparesTaken() {
		w.write(" END")
	}
}

// comparesTaken reports whether the guard compares a row where it increments the row's claim, not before the first
// assignment.
func (w numbers) comparesTaken() bool {
	return w.refuses(SetOf(RuleTakeover)) && !(w.Dialect.Guard.SetsInOrder.Is() && w.target.Changes)
}

// throwFor writes the expression of throwAfterLedger for a rule that no check covers, after the checks of all preceding
// rules.
func (w numbers) throwFor(r int, kind guard.Kind, column string, detail ...string) {
	before := upTo(r-1) &^ SetOf(RuleLedger)
	if w.Dialect.Guard.SetsInOrder.Is() || !w.refuses(before) { // they were checked before the first assignment
		w.throwAfterLedger(kind, column, detail...)
		return
	}
	w.write("CASE WHEN ")
	w.check(before)
	w.write(" THEN ")
	w.throwAfterLedger(kind, column, detail...)
	w.write(" END")
}
