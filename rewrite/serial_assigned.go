package rewrite

import "github.com/sqlfence/sqlfence/internal/sql/read"

// A statement may assign the serial itself, as applications do that compare it in
// their own WHERE. The value is guarded where it stands, so that it is evaluated
// once: the row's serial has to rise.

// assigned guards an item of a SET list that assigns the serial.
func (serial) assigned(p *planner, a *read.Assignment, _ bool) bool {
	t := &p.target
	if !p.Assigns(*a, t.rules.Serial) {
		return true
	}
	if t.versioned {
		return p.refuseTarget(a.Lo, "under WithSerial a statement can't assign the serial column; leave the column out: "+
			"it rises by itself")
	}
	value, ok := p.Value(*a, t.rules.Serial)
	switch {
	case t.setsSerial:
		return p.refuseTarget(a.Lo, "it assigns the serial column twice; leave the column out: it rises by itself")
	case !ok:
		return p.refuseTarget(a.Lo, "the value for the serial column isn't an expression of its own; write column = "+
			"value, or leave the column out: it rises by itself")
	case value.Lo+1 == value.Hi && p.Word(value.Lo, "default"):
		return p.refuseTarget(value.Lo, "DEFAULT would set the serial back; leave the column out: it rises by itself")
	}
	t.setsSerial = true
	table := p.to().Table
	p.assigns = append(p.assigns, make([]bool, max(0, table+1-len(p.assigns)))...)
	p.assigns[table] = true
	p.insert(p.Offset(value.Lo), opBeforeAssigned, 0, "")
	p.insert(p.After(value.Hi), opBehindAssigned, 0, "")
	return true
}

// beforeAssigned writes what stands before the value that the statement assigns to
// the serial, and behindAssigned what stands behind it. Together they raise unless that
// is higher than the row's serial. Both are compared as integers, as it is stored: 7.4
// doesn't raise 7.
func (w *writer) beforeAssigned() {
	switch {
	case w.observe:
		return
	case w.lacksSerial():
		w.write("COALESCE(")
		w.raiseSerial(markerRequired)
		w.write(", (")
		return
	}
	if w.isNoInteger("CASE WHEN ", " THEN ") {
		w.notSerial()
		w.write(" ELSE ")
	}
	greatest, _, _ := w.dialect.greatest()
	assigned, _, _ := w.dialect.assigned()
	w.write("COALESCE(NULLIF(", greatest, assigned)
}

func (w *writer) behindAssigned() {
	switch {
	case w.observe:
		return
	case w.lacksSerial():
		w.write("))")
		return
	}
	_, between, behind := w.dialect.assigned()
	_, and, end := w.dialect.greatest()
	cast := w.dialect.asInteger()
	w.write(between, w.target.qualifier, ".", w.rules.serial, behind, and)
	w.storedSerial()
	w.write(cast, end, ", ")
	w.storedSerial()
	w.write(cast, "), ")
	w.raiseSerial(markerAssigned)
	w.write(")")
	if precedence[ruleEditLock].refuses(w) && !w.dialect.setsInOrder() {
		w.write(" + CASE WHEN ")
		w.check(allRules &^ setOf(ruleLedger))
		w.write(" THEN 0 END")
	}
	if before, _ := w.dialect.notInteger(); before != "" {
		w.write(" END")
	}
}
