package rewrite

// A statement may assign the serial itself, as applications do that compare it in
// their own WHERE. The value is guarded where it stands, so that it is evaluated
// once: the row's serial has to rise.

// assignedSerial guards the item of a SET list that begins at token i and assigns
// the serial of t; the list ends at hi.
func (r *reader) assignedSerial(t *target, i, hi int) bool {
	if t.checked {
		return r.refuse(t.table, i, "it assigns the serial column, which WithSerial raises by itself; leave the column out")
	}
	end := i
	for end < hi && !isPunct(r.toks[end], ',') {
		end = r.skip(end)
	}
	lo, hi, ok := r.assignedValue(i, end, t.rules.Serial)
	switch {
	case t.setsSerial:
		return r.refuse(t.table, i, "it assigns the serial column twice; leave the column out: it rises by itself")
	case !ok:
		return r.refuse(t.table, i, "the value that it assigns to the serial column can't be seen; assign it by column = value, or leave the column out: it rises by itself")
	case lo+1 == hi && r.isWord(r.toks[lo], "default"):
		return r.refuse(t.table, lo, "DEFAULT would set the serial back; leave the column out: it rises by itself")
	}
	t.setsSerial = true
	r.insert(r.toks[lo].start, opRaised, t, t.qualifier)
	r.insert(r.toks[hi-1].end, opRaisedEnd, t, t.qualifier)
	return true
}

// assignedValue returns the tokens of the value that an item of a SET list, tokens
// i to end, assigns to the column.
//
//	column = value
//	(column, ...) = [ROW] (value, ...)
func (r *reader) assignedValue(i, end int, column string) (lo, hi int, ok bool) {
	place, columns := 0, 1
	equals := i + 1
	if isPunct(r.toks[i], '(') {
		names := r.list(i)
		columns, equals = len(names), int(r.toks[i].mate)+1
		for n, name := range names {
			if s, isName := normal(r.dialect, r.src, r.toks[name[0]]); isName && s == column {
				if ok || name[0]+1 != name[1] {
					return 0, 0, false // again, or a part of it
				}
				place, ok = n, true
			}
		}
	}
	if !isPunct(r.toks[equals], '=') {
		return 0, 0, false // a part of it
	}
	lo = equals + 1
	if r.dialect == SQLite && isPunct(r.toks[lo], '=') && r.toks[lo].start == r.toks[equals].end {
		lo++ // == is = there
	}
	if lo >= end {
		return 0, 0, false
	}
	// In SQLite one column in brackets takes a plain value.
	if !isPunct(r.toks[i], '(') || columns == 1 && r.dialect == SQLite {
		return lo, end, true
	}
	row := r.dialect == Postgres && r.isWord(r.toks[lo], "row")
	if row {
		lo++
	}
	if !isPunct(r.toks[lo], '(') || int(r.toks[lo].mate)+1 != end || columns == 1 && !row ||
		r.isWord(r.toks[lo+1], "select", "values", "with", "table") {
		return 0, 0, false
	}
	values := r.list(lo)
	for _, v := range values {
		if isPunct(r.toks[v[1]-1], '*') {
			return 0, 0, false // it may stand for any number of values
		}
	}
	if len(values) != columns || values[place][0] == values[place][1] {
		return 0, 0, false
	}
	return values[place][0], values[place][1], true
}

// list returns the first and the last but one token of each item in the bracket
// that opens at token i.
func (r *reader) list(i int) (items [][2]int) {
	mate := int(r.toks[i].mate)
	for from := i + 1; from <= mate; {
		to := from
		for to < mate && !isPunct(r.toks[to], ',') {
			to = r.skip(to)
		}
		items = append(items, [2]int{from, to})
		from = to + 1
	}
	return items
}

// required reports whether the update of an upsert raises for want of a serial.
func (w *writer) required() bool {
	return w.rules.SerialRequired && !w.changes && !w.plan.Versioned && !w.observe
}

// noSerial raises for an update without a serial.
func (w *writer) noSerial(qualifier string) { w.raiseSerial(markRequired, qualifier) }

// raised writes what stands before the value that the statement assigns to the
// serial, and raisedEnd what stands behind it. Together they raise unless that is
// higher than the row's serial, or NULL's 0.
//
// Both are compared as integers, as it is stored: 7.4 doesn't raise 7. PostgreSQL
// finds the type of a parameter by the column's, which COALESCE stands for. In
// SQLite a cast to INTEGER alone would take '9e18' for 9.
func (w *writer) raised(qualifier string) {
	switch {
	case w.observe:
		return
	case w.required():
		w.write("COALESCE(")
		w.noSerial(qualifier)
		w.write(", (")
		return
	case w.dialect == SQLite:
		w.write("CASE WHEN ")
		w.notInteger(qualifier)
		w.write(" THEN ")
		w.notSerial(qualifier)
		w.write(" ELSE COALESCE(NULLIF(max(CAST(CAST((")
		return
	}
	w.write("COALESCE(NULLIF(GREATEST(COALESCE((")
}

func (w *writer) raisedEnd(qualifier string) {
	cast := ""
	switch {
	case w.observe:
		return
	case w.required():
		w.write("))")
		return
	case w.dialect == SQLite:
		w.write(") AS NUMERIC) AS INTEGER), ")
	default:
		cast = "::bigint"
		w.write("), ", qualifier, ".", w.rules.serial, ")::bigint, ")
	}
	w.storedSerial(qualifier)
	w.write(cast, "), ")
	w.storedSerial(qualifier)
	w.write(cast, "), ")
	w.raiseSerial(markAssigned, qualifier)
	w.write(")")
	if w.rules.locks() {
		w.write(" + CASE WHEN ")
		w.check(qualifier)
		w.write(" THEN 0 END")
	}
	if w.dialect == SQLite {
		w.write(" END")
	}
}
