package rewrite

import (
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/rewrite/internal/read"
)

// A serial is a row's version: INSERT sets 1, and every UPDATE adds 1 unless it
// assigns the column itself, to a higher number. In a versioned plan a row with
// another serial than the caller's raises. NULL counts as 0.
type serial struct{}

// versions notes that the rows of the target are compared with the caller's serial, if there is
// one. It refuses a write that isn't the whole of its statement: the caller doesn't learn how many
// rows any other reached.
func (p writing) versions(w *read.Write) bool {
	if !p.versioned || p.target.rules.Serial == "" {
		return true
	}
	switch {
	case p.explained:
		return p.refuseTarget(w.At, "drivers don't count the rows of an EXPLAIN, so WithSerial can't report a row "+
			"that is gone; run it without WithSerial")
	case w.Depth > 0:
		return p.refuseTarget(w.At, "drivers don't count the rows of a write in WITH, so WithSerial can't report "+
			"a row that is gone; write it as the main statement, or run it without WithSerial")
	}
	if first := p.Writes[0].At; first < w.At && p.dialect.guard.WritesInWith.Is() {
		return p.refuseTarget(first, "under WithSerial the database would apply the write in WITH even if the "+
			"row is gone; send it as a statement of its own")
	}
	p.target.versioned, p.plan.Versioned = true, true
	return true
}

// namesNoSerial refuses a condition of versioned rows that reads the serial, or leaves
// out locked rows: that no row meets it would look as if the row was gone.
func (p writing) namesNoSerial(s lex.Span) bool {
	if !p.target.versioned {
		return true
	}
	for i := s.Lo; i < s.Hi; i++ {
		if k := p.Tokens[i].Kind; k != lex.Word && k != lex.Quoted {
			continue
		}
		column, ok := p.Name(int(i))
		switch {
		case column == "skip" && p.Word(i+1, "locked") && p.dialect.guard.SkipsLocked.Is():
			return p.refuseTarget(i, "SKIP LOCKED skips a row that another transaction has locked, which "+
				"WithSerial would report as gone; leave SKIP LOCKED out, or run it without WithSerial")
		case !ok || column != p.target.rules.Serial || p.isOfAnother(i, s.Lo):
		default:
			return p.refuseTarget(i, "the condition names the serial column, which WithSerial compares already; "+
				"leave the column out, or qualify it if it is another table's")
		}
	}
	return true
}

// isOfAnother reports whether the name of another table stands before a column, at a
// token of what begins at lo.
func (p writing) isOfAnother(token, lo int32) bool {
	if token <= lo+1 || !p.Tokens[token-1].Is('.') {
		return false
	}
	of, ok := p.Name(int(token) - 2)
	return ok && p.dialect.Quote(of) != p.target.qualifier
}

// versionedUpsert makes an INSERT that may update raise where it has inserted a row that
// the caller had read: a RETURNING sees what became of each row.
func (p writing) versionedUpsert(w *read.Write) bool {
	switch {
	case !p.target.versioned:
		return true
	case !p.dialect.countsRows:
		// Drivers count the rows of a statement that returns some in different ways.
		return p.refuseTarget(w.ConflictsAt,
			"an upsert doesn't show whether it updated the row, so WithSerial can't report a row that is gone; "+
				"write UPDATE, or INSERT for a new row")
	case p.insertion.names.has(ruleSerial):
		return p.refuseTarget(w.ConflictsAt, "under WithSerial an upsert can't name the serial column; "+
			"leave the column out")
	case p.insertion.returned:
		return p.refuseTarget(w.ConflictsAt, "under WithSerial an upsert has to show the rows' keys; pass them as "+
			"arguments, or write constants")
	case w.Returning > 0:
		return p.refuseTarget(w.Returning, "under WithSerial an upsert can't have RETURNING; write UPDATE, or "+
			"leave RETURNING out")
	}
	p.insert(p.After(w.ConflictsEnd), opGone, 0, "")
	return true
}

// assigned guards an item of a SET list that assigns the serial.
func (serial) assigned(p writing, a *read.Assignment, _ bool) bool {
	column := p.target.rules.Serial
	if p.target.versioned && p.Assigns(*a, column) {
		return p.refuseTarget(a.Lo, "under WithSerial a statement can't assign the serial column; leave the "+
			"column out: it rises by itself")
	}
	return p.assignsNumber(a, column, "serial", "leave the column out: it rises by itself")
}

func (serial) inserted(p inserting, column string, _ int32, _ int) bool {
	if column == p.target.rules.Serial {
		p.insertion.names |= setOf(ruleSerial)
	}
	return true
}

func (serial) adds(t *registered) added { return added{"serial", t.quoted.serial, "1"} }

// inWhere: a row that is updated is compared where its next serial is assigned.
func (serial) inWhere(_ *registered, how rowWrite) bool { return how.versioned && !how.updates }

type serialText struct{}

func (serialText) refuses(w *writer) bool { return w.comparesSerial() }

func (serialText) check(w *writer) {
	w.write("CASE")
	if w.isNoInteger(" WHEN ", " THEN ") {
		w.raiseNoInteger()
		w.write(" IS NOT NULL")
	}
	w.write(" WHEN ")
	w.atSerial()
	w.write(" THEN ")
	w.bool(true)
	w.write(" ELSE ")
	w.raiseAfterLedger(guard.Conflict, w.rules.quoted.serial, "COALESCE(", w.target.qualifier, ".", w.rules.quoted.serial, ", 0)")
	w.write(" IS NOT NULL END")
}

func (serial) inSet(_ *registered, how rowWrite) bool { return !how.setsNumber }

// assigns writes the assignment of the next serial.
func (serialText) assigns(w *writer) {
	w.writeAssigned(", ", w.rules.quoted.serial)
	switch {
	case w.lacksSerial():
		w.raiseNumber(guard.Required)
		return
	case !w.comparesSerial() || w.dialect.guard.SetsInOrder.Is():
		w.increment()
		return
	}
	w.write("CASE WHEN ")
	w.isNoInteger("", " OR ") // then the increment raises
	w.atSerial()
	w.write(" THEN ")
	w.increment()
	w.write(" ELSE ")
	w.raiseNumber(guard.Conflict)
	w.write(" END")
}

// comparesSerial reports whether rows of the table are compared with the serial.
func (w *writer) comparesSerial() bool {
	return w.plan.Versioned && w.rules.Serial != ""
}

// lacksSerial reports whether the update of an upsert raises for want of a serial.
func (w *writer) lacksSerial() bool {
	return w.rules.SerialRequired && !w.target.Changes && !w.plan.Versioned
}

func (w *writer) atSerial() {
	w.storedNumber()
	w.operator("=")
	w.callersSerial()
}

// callersSerial writes the serial that the caller read.
func (w *writer) callersSerial() { w.field(0, fieldSerial) }

// gone writes the RETURNING that raises for a row which wasn't there. A row that
// was inserted is at 1, one that was updated at the caller's serial and 1.
func (w *writer) gone() {
	if !w.comparesSerial() {
		return
	}
	w.write(" RETURNING CASE WHEN ", w.target.qualifier, ".", w.rules.quoted.serial)
	w.operator("-")
	w.write("1")
	w.operator("=")
	w.callersSerial()
	w.write(" THEN 1 ELSE ")
	w.raiseAfterLedger(guard.Gone, w.rules.quoted.serial, "COALESCE(", w.target.qualifier, ".", w.rules.quoted.serial, ", 0)")
	w.write(" END")
}
