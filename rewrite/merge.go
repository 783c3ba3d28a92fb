package rewrite

// merge reads PostgreSQL's MERGE after its first word.
//
//	MERGE INTO [ONLY] name [*] [[AS] alias] USING source ON condition
//	WHEN [NOT] MATCHED [BY {SOURCE | TARGET}] [AND condition] THEN
//	{UPDATE SET ... | DELETE | INSERT ... | DO NOTHING} ... [RETURNING ...]
func (r *reader) merge() bool {
	verb := r.i - 1
	if !r.accept("into") {
		return r.unreadable(verb)
	}
	t, ok := r.target(verb, "using")
	if !ok || t.table < 0 {
		return ok && (r.isWord(r.tok(), "using") || r.unreadable(verb))
	}
	if r.versioned && t.rules.Serial != "" {
		return r.refuse(t.table, verb, "some drivers don't count the rows of a MERGE, so WithSerial can't tell whether the row was there; write UPDATE or DELETE")
	}
	if r.until("when"); r.i == r.stop {
		return r.refuse(t.table, r.i, "expected WHEN here")
	}
	var always [3]bool // the kinds of which there was an arm without a condition
	for r.accept("when") {
		if !r.mergeArm(t, &always) {
			return false
		}
	}
	if r.accept("returning") {
		r.until()
	}
	if r.i != r.stop {
		return r.refuse(t.table, r.i, "this part of the statement can't be read")
	}
	return true
}

// mergeArm reads one arm, after WHEN, and guards what it does.
//
// PostgreSQL refuses an arm that is never taken, as one of its kind before it has no
// condition. The guard may be a condition, so that has to be seen here.
func (r *reader) mergeArm(t *target, always *[3]bool) bool {
	when, kind := r.i-1, 0
	if r.accept("not") {
		kind = 1
	}
	if !r.accept("matched") {
		return r.refuse(t.table, r.i, "expected MATCHED here")
	}
	if r.accept("by") {
		if r.isWord(r.tok(), "source") {
			kind = 2
		}
		r.step(1) // SOURCE or TARGET
	}
	if always[kind] {
		return r.refuse(t.table, when, "this WHEN is never reached, as one of its kind before it has no condition; leave it out")
	}
	always[kind] = !r.isWord(r.tok(), "and")
	prev, lo, hi := r.toks[r.i-1].end, 0, 0
	if r.accept("and") {
		lo = r.i
		if hi = r.until("then"); lo == hi {
			return r.refuse(t.table, lo, "a condition is missing here")
		}
	}
	if !r.accept("then") {
		return r.refuse(t.table, r.i, "expected THEN here")
	}
	switch {
	case r.accept("do", "nothing"):
		return true
	case r.accept("delete"):
		r.changes(t)
		t.updates, t.setsSerial = false, false
		r.armCheck(t, prev, lo, hi)
		return true
	case r.accept("update", "set"):
		r.changes(t)
		t.updates = true
		setEnd, ok := r.assignments(t, false, "when", "returning")
		if !ok {
			return false
		}
		r.armCheck(t, prev, lo, hi)
		r.assign(t, setEnd)
		return true
	case r.accept("insert"):
		ins := insertion{reader: r, target: t, key: -1, columns: -1}
		return ins.columnList() && ins.mergedRow()
	}
	return r.refuse(t.table, r.i, "expected UPDATE SET, DELETE, INSERT or DO NOTHING here")
}

// armCheck adds the check for the row to the condition lo to hi of an arm, or
// behind prev if it has none. It may only be evaluated where the arm is taken.
func (r *reader) armCheck(t *target, prev int32, lo, hi int) {
	if !t.inWhere(t.rules) {
		return
	}
	if lo == hi {
		r.insertText(prev, " AND ")
		r.insert(prev, opCheck, t, t.rowWrite.rules(), "")
		return
	}
	at := r.toks[hi-1].end
	r.insertText(r.toks[lo].start, "CASE WHEN (")
	r.insertText(at, ") THEN ")
	r.insert(at, opCheck, t, t.rowWrite.rules(), "")
	r.insertText(at, " ELSE false END")
}
