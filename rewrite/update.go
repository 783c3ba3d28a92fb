package rewrite

// update reads UPDATE after its first word.
//
//	UPDATE [OR x] [ONLY] name [*] [[AS] alias] [INDEXED BY i] SET list
//	[FROM ...] [WHERE ...] [RETURNING ...] [ORDER BY ...] [LIMIT ...]
func (r *reader) update() bool {
	verb := r.i - 1
	or, found := r.orClause()
	t, ok := r.target(verb, "set")
	if !ok || t.table < 0 {
		return ok && (r.isWord(r.tok(), "set") || r.unreadable(verb))
	}
	// FAIL keeps the rows changed before one that breaks a constraint, and each has
	// its mark; an error that a guard raises undoes the statement.
	if or != "" && !equalFold(or, "fail") {
		return r.refuse(t.table, verb+1, "OR "+or+" replaces rows or leaves some of them changed; write UPDATE without it")
	}
	if !r.versions(t, verb) {
		return false
	}
	if !found {
		r.orAbort(t, verb)
	}
	if found && t.rowWrite.versioned && r.isWord(r.toks[verb+2], "ignore") {
		return r.refuse(t.table, verb+1, "OR IGNORE leaves out a row that breaks a constraint, which would look as if it was gone; with WithSerial write UPDATE without it")
	}
	r.changes(t)
	t.updates = true
	if !r.accept("set") {
		return r.refuse(t.table, r.i, "expected SET here")
	}
	setEnd, ok := r.assignments(t, false, "from", "where", "returning", "order", "limit")
	if !ok {
		return false
	}
	r.assign(t, setEnd)
	from := r.i
	if r.accept("from") {
		r.until("where", "returning", "order", "limit")
	}
	return r.where(t, from)
}

// delete reads DELETE after its first word.
//
//	DELETE FROM [ONLY] name [*] [[AS] alias] [INDEXED BY i]
//	[USING ...] [WHERE ...] [RETURNING ...] [ORDER BY ...] [LIMIT ...]
func (r *reader) delete() bool {
	verb := r.i - 1
	if !r.accept("from") {
		return r.unreadable(verb)
	}
	t, ok := r.target(verb, "using", "where", "returning", "order", "limit")
	if !ok || t.table < 0 {
		return ok && (r.i == r.stop || r.isWord(r.tok(), "using", "where", "returning", "order", "limit") || r.unreadable(verb))
	}
	if !r.versions(t, verb) {
		return false
	}
	r.changes(t)
	from := r.i
	if r.accept("using") {
		r.until("where", "returning", "order", "limit")
	}
	return r.where(t, from)
}

// assignments reads a SET list up to one of the words that may follow it, and
// returns where it ends. It refuses one that assigns the fence, or a key that
// can't be seen. upsert tells whether there is an excluded row.
func (r *reader) assignments(t *target, upsert bool, follow ...string) (setEnd int32, ok bool) {
	lo := r.i
	hi := r.until(follow...)
	t.setsSerial = false
	for i := lo; i < hi; {
		if t.rules.Serial != "" && r.setsColumn(i, t.rules.Serial) && !r.assignedSerial(t, i, hi) {
			return 0, false
		}
		// One item: column ..., or (column, column) = ...
		names := r.toks[i : i+1]
		if isPunct(r.toks[i], '(') {
			names = r.toks[i+1 : r.toks[i].mate]
		}
		for _, n := range names {
			column, ok := normal(r.dialect, r.src, n)
			if !ok {
				continue
			}
			if column == t.rules.FenceColumn && t.rules.FenceColumn != "" {
				return 0, r.refuse(t.table, i, "it assigns the fence column, which only sqlfence writes; leave the column out")
			}
			if t.rules.Key != "" && (column == t.rules.Key || r.isRowid(column)) && !r.newKey(t, column, i, hi, upsert) {
				return 0, false
			}
		}
		for i < hi && !isPunct(r.toks[i], ',') {
			i = r.skip(i)
		}
		if i++; i == hi {
			return 0, r.refuse(t.table, hi, "an assignment is missing here")
		}
	}
	if lo == hi {
		return 0, r.refuse(t.table, hi, "an assignment is missing here")
	}
	return r.toks[hi-1].end, true
}

// newKey notes where the value of the assignment i of the key column stands; the
// list ends at hi. Another value than the row's own key would move the row out of
// its token's scope, so only a value is read that can be compared with it.
func (r *reader) newKey(t *target, column string, i, hi int, upsert bool) bool {
	value := i + 2
	if column == t.rules.Key && value < hi && isPunct(r.toks[i+1], '=') {
		endsAt := func(i int) bool { return i == hi || isPunct(r.toks[i], ',') }
		to := &r.targets[t.index]
		if v, next, ok := r.value(value); ok && endsAt(next) {
			to.AssignsKey, to.NewKeys = true, append(to.NewKeys, v)
			return true
		}
		if upsert && value+2 < hi && endsAt(value+3) && r.isExcludedKey(t, value) {
			to.AssignsKey = true
			return true
		}
	}
	return r.refuse(t.table, i, "it assigns the key column what may be another key, which would move the row out of its token's scope; "+
		"leave the column out, or assign the row's own key as an argument or as a plain constant")
}

// isExcludedKey reports whether the three tokens at i are excluded.key, the key of
// the row that was to be inserted, which is one of [Target.Keys]. Where the table
// is called excluded itself they may be another's.
func (r *reader) isExcludedKey(t *target, i int) bool {
	of, _ := normal(r.dialect, r.src, r.toks[i])
	column, ok := normal(r.dialect, r.src, r.toks[i+2])
	return of == "excluded" && isPunct(r.toks[i+1], '.') && ok && column == t.rules.Key &&
		t.qualifier != quoteName(r.dialect, "excluded")
}

// setsColumn reports whether the item of a SET list that begins at i assigns the
// column: column = ..., or (column, column[subscript]) = ...
func (r *reader) setsColumn(i int, column string) bool {
	stop := i + 1
	if isPunct(r.toks[i], '(') {
		i, stop = i+1, int(r.toks[i].mate)
	}
	for i < stop {
		if name, ok := normal(r.dialect, r.src, r.toks[i]); ok && name == column {
			return true
		}
		for i < stop && !isPunct(r.toks[i], ',') {
			i = r.skip(i)
		}
		i++
	}
	return false
}

// isRowid reports whether a column is one of SQLite's other names for an
// INTEGER PRIMARY KEY.
func (r *reader) isRowid(column string) bool {
	return r.dialect == SQLite && (column == "rowid" || column == "oid" || column == "_rowid_")
}
