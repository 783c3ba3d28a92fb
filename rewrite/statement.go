package rewrite

import "slices"

// script reads the whole text: one statement, or several with semicolons
// between them, which pass only if every one of them does.
func (r *reader) script() *Plan {
	guarded := -1
	for count := 1; r.nonEmpty(); count++ {
		begin := r.i
		table, ok := r.statement()
		if ok && count > 1 && max(table, guarded) >= 0 {
			ok = r.refuse(max(table, guarded), begin, "it writes to a registered table and is one of several statements in one text; send each by itself")
		}
		if !ok {
			return &Plan{Verdict: Refuse, Refusal: *r.refused}
		}
		guarded = max(table, guarded)
	}
	if guarded < 0 {
		return pass
	}
	slices.SortStableFunc(r.edits, func(a, b edit) int { return int(a.at - b.at) })
	return &Plan{
		Verdict: Guard,
		Table:   guarded,
		Keys:    r.keys,
		Inputs:  r.inputs.count,
		Params:  !r.inputs.named,
		writer:  writer{dialect: r.dialect, src: r.src, edits: r.edits, rules: &r.tables[guarded]},
	}
}

// nonEmpty steps over semicolons and reports whether a statement follows.
func (r *reader) nonEmpty() bool {
	for r.acceptPunct(';') {
	}
	return r.tok().kind != end
}

// statement reads one statement, to its semicolon or the end of the text. It
// returns the index of the table that it writes to and that is now guarded, or
// -1 if it may pass as it is; ok is false if it is to be refused.
func (r *reader) statement() (table int, ok bool) {
	begin := r.i
	stop := begin
	for !(r.toks[stop].kind == end || isPunct(r.toks[stop], ';')) {
		stop++
	}
	switch {
	case r.accept("update"):
		table, ok = r.update(stop)
	case r.accept("delete"):
		table, ok = r.delete(stop)
	case r.accept("insert"):
		table, ok = r.insertInto(stop, true)
	case r.dialect == SQLite && r.accept("replace"):
		table, ok = r.insertInto(stop, false)
	default:
		table, ok = -1, r.other(begin, stop)
	}
	r.i = stop
	return table, ok
}

// other decides about a statement that isn't a write of rows by its first word.
func (r *reader) other(begin, stop int) bool {
	switch {
	case r.dialect == Postgres && r.isWord(r.tok(), "do", "call", "prepare"):
		// The name may stand inside of a string that is run.
		table, at := r.mention(begin, stop)
		if table < 0 {
			at = begin
		}
		return r.refuse(table, at, "code whose text names a registered table can't be guarded; send its statements one by one, or run it under Bypass")
	case r.passesByVerb(begin, stop):
		return true
	}
	table, at := r.mention(begin, stop)
	if table < 0 {
		return true
	}
	switch {
	case r.isRead(begin, stop):
		if w := r.hiddenWrite(begin, stop); w >= 0 {
			return r.refuse(table, w, "a write inside of another statement can't be guarded; send it by itself")
		}
		return true
	case r.isDefinition():
		if w := r.hiddenWrite(begin+1, stop); w >= 0 {
			return r.refuse(table, w, "a write inside of a definition can't be guarded; send it by itself")
		}
		return true
	}
	return r.refuse(table, at, "this kind of statement on a registered table can't be guarded; write UPDATE, DELETE or INSERT, or run it under Bypass")
}

// passesByVerb holds for statements that change no rows whatever they name.
func (r *reader) passesByVerb(begin, stop int) bool {
	switch {
	case r.isWord(r.tok(), "begin", "start", "commit", "end", "rollback", "savepoint", "release",
		"lock", "analyze", "vacuum"):
		return true
	case r.dialect == SQLite:
		// EXPLAIN never runs the statement in SQLite.
		return r.isWord(r.tok(), "explain", "pragma", "attach", "detach", "reindex")
	case r.isWord(r.tok(), "abort", "set", "reset", "show", "listen", "unlisten", "notify",
		"fetch", "move", "close", "deallocate", "discard", "execute"):
		return true
	case r.isWord(r.tok(), "explain"):
		return !r.explainRuns(begin, stop)
	}
	return false
}

// explainRuns reports whether PostgreSQL's EXPLAIN may run its statement.
func (r *reader) explainRuns(begin, stop int) bool {
	for _, t := range r.toks[begin:stop] {
		if r.isWord(t, "analyze", "analyse") {
			return true
		}
	}
	return false
}

// isRead holds for statements that only read, unless a write hides in them.
func (r *reader) isRead(begin, stop int) bool {
	i := begin
	for isPunct(r.toks[i], '(') {
		i++
	}
	switch t := r.toks[i]; {
	case r.isWord(t, "select", "values", "table", "with"):
		return true
	case r.dialect != Postgres:
		return false
	case r.isWord(t, "explain"):
		return r.isExplainedRead(i+1, stop)
	case r.isWord(t, "declare"):
		return true
	case r.isWord(t, "copy"):
		return r.isCopyTo(i+1, stop)
	}
	return false
}

// isExplainedRead holds for the rest of EXPLAIN [(...)] [ANALYZE] [VERBOSE] read.
func (r *reader) isExplainedRead(i, stop int) bool {
	if isPunct(r.toks[i], '(') && !r.isWord(r.toks[i+1], "select", "values", "table", "with") {
		i = r.skip(i)
	}
	for r.isWord(r.toks[i], "analyze", "analyse", "verbose") {
		i++
	}
	return i < stop && r.isRead(i, stop) && !r.isWord(r.toks[i], "explain")
}

// isCopyTo holds for the rest of COPY name [(columns)] TO and COPY (query) TO.
func (r *reader) isCopyTo(i, stop int) bool {
	for ; i < stop; i = r.skip(i) {
		if r.isWord(r.toks[i], "to") {
			return true
		}
		if r.isWord(r.toks[i], "from") {
			return false
		}
	}
	return false
}

// isDefinition holds for CREATE TABLE and CREATE INDEX, which change no rows of
// a table that exists.
func (r *reader) isDefinition() bool {
	if !r.isWord(r.tok(), "create") {
		return false
	}
	i := r.i + 1
	for r.isWord(r.toks[i], "global", "local", "temp", "temporary", "unlogged", "unique") {
		i++
	}
	return r.isWord(r.toks[i], "table", "index")
}
