package rewrite

import "strings"

// A serial is a row's version: INSERT sets 1, and every UPDATE adds 1 unless it
// assigns the column itself, to a higher number. In a versioned plan a row with
// another serial than the context's raises. NULL counts as 0.

// versions notes that the rows of t are compared with the context's serial, if
// the plan is versioned. It refuses a write that isn't the whole of its statement:
// of another one nobody learns how many rows it reached.
func (r *reader) versions(t *target, verb int) bool {
	if !r.versioned || t.rules.Serial == "" {
		return true
	}
	switch {
	case r.explained:
		return r.refuse(t.table, verb, "EXPLAIN doesn't tell whether the row was there; run it without WithSerial")
	case r.depth > 0:
		return r.refuse(t.table, verb, "WITH hides whether the row was there; write it as the main statement, or run it without WithSerial")
	}
	if w := r.hiddenWrite(0, verb); w >= 0 && r.dialect == Postgres {
		return r.refuse(t.table, w, "with WithSerial a write in WITH would be made although the row is gone; send it as a statement of its own")
	}
	t.checked, r.plan.Versioned = true, true
	return true
}

// endsAlone refuses a versioned statement with anything behind its semicolon in
// SQLite, be it a comment: a driver may take that for another statement, and then
// it counts the rows of that one.
func (r *reader) endsAlone() bool {
	if r.dialect != SQLite || r.plan == nil || !r.plan.Versioned || r.toks[r.stop].kind == end ||
		strings.TrimSpace(r.src[r.toks[r.stop].end:]) == "" {
		return true
	}
	return r.refuse(r.written[0], r.stop, "with WithSerial nothing can stand behind the semicolon, as drivers would count its rows; leave it out")
}

// returning steps over RETURNING and notes it.
func (r *reader) returning() bool {
	if !r.accept("returning") {
		return false
	}
	if r.plan != nil && r.depth == 0 {
		r.plan.Returns = true
	}
	return true
}

// ownSerial refuses a condition of a checked target, tokens lo to hi, that reads
// its serial, or leaves out locked rows: that no row meets it would look as if the
// row was gone.
func (r *reader) ownSerial(t *target, lo, hi int) bool {
	if !t.checked {
		return true
	}
	for i := lo; i < hi; i++ {
		if k := r.toks[i].kind; k != word && k != quoted {
			continue
		}
		column, ok := normal(r.dialect, r.src, r.toks[i])
		if r.dialect == Postgres && column == "skip" && r.isWord(r.toks[i+1], "locked") {
			return r.refuse(t.table, i, "SKIP LOCKED leaves out a row that somebody else is writing, which would look as if it was gone; leave it out, or run it without WithSerial")
		}
		if !ok || column != t.rules.Serial {
			continue
		}
		if i > lo+1 && isPunct(r.toks[i-1], '.') {
			if of, ok := normal(r.dialect, r.src, r.toks[i-2]); ok && quoteName(r.dialect, of) != t.qualifier {
				continue // of another table
			}
		}
		return r.refuse(t.table, i, "the condition names the serial column, which WithSerial compares already; leave it out, or put the name of the table it is of before it")
	}
	return true
}

// assign adds to a SET list what sqlfence assigns: the mark and the serial.
func (r *reader) assign(t *target, setEnd int32) {
	if t.rules.FenceColumn != "" {
		r.insert(setEnd, opMark, t, t.qualifier)
	}
	if t.rules.Serial != "" && !t.setsSerial {
		r.insert(setEnd, opSerial, t, t.qualifier)
	}
}

// versionedUpsert makes an INSERT that may update raise where it has inserted a
// row that the caller had read: a RETURNING sees what became of each row.
func (r *insertion) versionedUpsert(onConflict int) bool {
	switch {
	case !r.checked:
		return true
	case r.dialect == SQLite:
		// Drivers count the rows of a statement that returns some in different ways.
		return r.refuse(r.table, onConflict, "WithSerial can't tell in SQLite whether DO UPDATE found the row; write UPDATE, or INSERT for a new row")
	case r.namesSerial:
		return r.refuse(r.table, onConflict, "with WithSerial an INSERT that may update can't name the serial column; leave the column out")
	case r.isWord(r.tok(), "returning"):
		return r.refuse(r.table, r.i, "with WithSerial an INSERT that may update can't have RETURNING; write UPDATE, or leave RETURNING out")
	}
	r.insert(r.toks[r.i-1].end, opGone, r.target, r.qualifier)
	return true
}

// compares reports whether rows of the table are compared with the serial.
func (w *writer) compares() bool {
	return w.plan.Versioned && !w.observe && w.rules.Serial != ""
}

// maxSerial is the highest one; SQLite would go on in floating point.
const maxSerial = "9223372036854775807"

// nextSerial writes the assignment of the row's next serial.
func (w *writer) nextSerial(qualifier string) {
	w.write(", ", w.rules.serial, " = ")
	switch {
	case w.required():
		w.noSerial(qualifier)
		return
	case !w.compares():
		w.increment(qualifier)
		return
	}
	w.write("CASE WHEN ")
	if w.dialect == SQLite { // what isn't a number is told by the increment
		w.notInteger(qualifier)
		w.write(" OR ")
	}
	w.atSerial(qualifier)
	w.write(" THEN ")
	w.increment(qualifier)
	w.write(" ELSE ")
	w.conflict(qualifier)
	w.write(" END")
}

// increment writes the row's serial and 1. In SQLite a column holds values of any
// type, and the sum of text and 1 is a number.
func (w *writer) increment(qualifier string) {
	if w.dialect != SQLite {
		w.storedSerial(qualifier)
		w.write(" + 1")
		return
	}
	w.write("CASE WHEN ")
	w.notInteger(qualifier)
	w.write(" OR ")
	w.storedSerial(qualifier)
	w.write(" = ", maxSerial, " THEN ")
	if w.observe {
		w.write(qualifier, ".", w.rules.serial)
	} else {
		w.notSerial(qualifier)
	}
	w.write(" ELSE ")
	w.storedSerial(qualifier)
	w.write(" + 1 END")
}

func (w *writer) notInteger(qualifier string) {
	w.write("typeof(", qualifier, ".", w.rules.serial, ") NOT IN ('integer', 'null')")
}

// notSerial raises for what can't be counted on; only SQLite needs it.
func (w *writer) notSerial(qualifier string) {
	w.raise(markNotSerial, w.table, "substr(", qualifier, ".", w.rules.serial, ", 1, 40)")
}

func (w *writer) storedSerial(qualifier string) {
	w.write("COALESCE(", qualifier, ".", w.rules.serial, ", 0)")
}

func (w *writer) atSerial(qualifier string) {
	w.storedSerial(qualifier)
	w.write(" = ")
	w.callersSerial()
}

// conflict raises for a row at another serial.
func (w *writer) conflict(qualifier string) { w.raiseSerial(markConflict, qualifier) }

// raiseSerial raises with the row's serial. What the tokens say comes first: who
// has lost the resource is not to read again and retry.
func (w *writer) raiseSerial(kind, qualifier string) {
	raise := func() { w.raise(kind, w.table, "COALESCE(", qualifier, ".", w.rules.serial, ", 0)") }
	if w.lo == w.hi || !w.rules.Fenced() {
		raise()
		return
	}
	w.write("CASE WHEN ")
	w.tokenCheck(qualifier)
	if w.rules.Ledger {
		w.write(" AND ")
		w.ledgerCondition(w.schema)
	}
	w.write(" THEN ")
	raise()
	w.write(" END")
}

// afterLedger writes what raises so that the ledger is asked first.
func (w *writer) afterLedger(raise func()) {
	if !w.rules.Ledger || w.lo == w.hi {
		raise()
		return
	}
	w.write("CASE WHEN ")
	w.ledgerCondition(w.schema)
	w.write(" THEN ")
	raise()
	w.write(" END")
}

// serialCheck writes the condition on a row that is to be deleted.
func (w *writer) serialCheck(qualifier string) {
	w.write("CASE")
	if w.dialect == SQLite {
		w.write(" WHEN ")
		w.notInteger(qualifier)
		w.write(" THEN ")
		w.notSerial(qualifier)
		w.write(" IS NOT NULL")
	}
	w.write(" WHEN ")
	w.atSerial(qualifier)
	w.write(" THEN ")
	w.tokenCheck(qualifier)
	w.write(" ELSE ")
	w.conflict(qualifier)
	w.write(" IS NOT NULL END")
}

// gone writes the RETURNING that raises for a row which wasn't there. A row that
// was inserted is at 1, one that was updated at the caller's serial and 1.
func (w *writer) gone(qualifier string) {
	if !w.compares() {
		return
	}
	w.write(" RETURNING CASE WHEN ", qualifier, ".", w.rules.serial, " - 1 = ")
	w.callersSerial()
	w.write(" THEN 1 ELSE ")
	w.afterLedger(func() { w.raise(markGone, w.table, "COALESCE(", qualifier, ".", w.rules.serial, ", 0)") })
	w.write(" END")
}

// callersSerial writes the serial that the caller read.
func (w *writer) callersSerial() {
	w.field(0, fieldSerial)
}

// changes notes that the statement writes rows of t that are there.
func (r *reader) changes(t *target) { r.targets[t.index].Changes = true }
