package rewrite

import "strings"

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
	t.rowWrite.versioned, r.plan.Versioned = true, true
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
	if !t.rowWrite.versioned {
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

// assign adds to a SET list what the rules assign.
func (r *reader) assign(t *target, setEnd int32) {
	var rules ruleSet
	if t.rules.FenceColumn != "" {
		rules |= setOf(ruleRowFence)
	}
	if t.rules.Serial != "" && !t.setsSerial {
		rules |= setOf(ruleSerial)
	}
	if rules != 0 {
		r.insert(setEnd, opAssign, t, rules, "")
	}
}

// versionedUpsert makes an INSERT that may update raise where it has inserted a
// row that the caller had read: a RETURNING sees what became of each row.
func (r *insertion) versionedUpsert(onConflict int) bool {
	switch {
	case !r.rowWrite.versioned:
		return true
	case r.dialect == SQLite:
		// Drivers count the rows of a statement that returns some in different ways.
		return r.refuse(r.table, onConflict, "WithSerial can't tell in SQLite whether DO UPDATE found the row; write UPDATE, or INSERT for a new row")
	case r.namesSerial:
		return r.refuse(r.table, onConflict, "with WithSerial an INSERT that may update can't name the serial column; leave the column out")
	case r.isWord(r.tok(), "returning"):
		return r.refuse(r.table, r.i, "with WithSerial an INSERT that may update can't have RETURNING; write UPDATE, or leave RETURNING out")
	}
	r.insert(r.toks[r.i-1].end, opGone, r.target, 0, "")
	return true
}

// changes notes that the statement writes rows of t that are there.
func (r *reader) changes(t *target) { r.targets[t.index].Changes = true }

// A statement may assign the serial itself, as applications do that compare it in
// their own WHERE. The value is guarded where it stands, so that it is evaluated
// once: the row's serial has to rise.

// assignedSerial guards the item of a SET list that begins at token i and assigns
// the serial of t; the list ends at hi.
func (r *reader) assignedSerial(t *target, i, hi int) bool {
	if t.rowWrite.versioned {
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
	r.insert(r.toks[lo].start, opBeforeAssigned, t, 0, "")
	r.insert(r.toks[hi-1].end, opBehindAssigned, t, 0, "")
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
