package rewrite

import "slices"

// script reads the whole text: one statement, or several with semicolons
// between them, which pass only if every one of them does.
func (r *reader) script() *Plan {
	if !r.foldsClearly() {
		return &Plan{Verdict: Refuse, Refusal: *r.refused}
	}
	for count := 1; r.nonEmpty(); count++ {
		begin := r.i
		ok := r.keepsEncoding() && r.statement()
		if ok && count > 1 && len(r.written) > 0 {
			ok = r.refuse(r.written[0], begin, "it writes to a registered table and is one of several statements in one text; send each by itself")
		}
		if !ok || r.refused != nil || !r.endsAlone() {
			return &Plan{Verdict: Refuse, Refusal: *r.refused}
		}
		r.i = r.stop
	}
	if len(r.written) == 0 {
		return pass
	}
	r.ledgerStatements()
	order(r.edits, r.src)
	p := &r.plan.Plan
	p.form = &r.plan.form
	p.Verdict = Guard
	p.Tables, p.Targets = r.written, r.targets
	p.countRows()
	p.Inputs = r.inputs.count
	p.Params = !r.inputs.named && p.Inputs+defaultArgs*len(p.Tables) <= dialects[r.dialect].maxInputs()
	p.source = source{dialect: dialects[r.dialect], src: r.src, edits: r.edits, tables: r.tables, plan: p, inOneWay: r.inOneWay}
	if !p.renderDefault() {
		return refusal(r.written[0], 0, unconfirmed)
	}
	return p
}

// nonEmpty steps over semicolons and reports whether a statement follows, whose
// region it sets.
func (r *reader) nonEmpty() bool {
	for r.acceptPunct(';') {
	}
	r.stop = r.i
	for r.toks[r.stop].kind != end && !isPunct(r.toks[r.stop], ';') {
		r.stop = r.skip(r.stop)
	}
	return r.i < r.stop
}

// ledgerStatements puts PostgreSQL's ledger statements where they belong.
func (r *reader) ledgerStatements() {
	needed := func(table int) bool { return r.tables[table].Ledger }
	if r.dialect != Postgres || !slices.ContainsFunc(r.written, needed) {
		return
	}
	with := "WITH"
	if r.ledgerWith {
		with = ""
	}
	r.edits = append(r.edits, edit{at: r.ledgerAt, op: opWith, text: with})
}

// statement reads the statement of the region, and reports whether it may pass,
// with or without a guard.
func (r *reader) statement() bool {
	r.ledgerAt, r.ledgerWith = r.tok().start, false
	begin := r.i
	switch {
	case r.dialect == Postgres && r.accept("explain"):
		return r.explain(begin)
	case r.dialect == Postgres && isPunct(r.tok(), '(') && int(r.tok().mate) == r.stop-1:
		// (WITH ... SELECT ...) may write like one without brackets.
		return r.within(r.statement)
	case r.accept("with"):
		return r.with(begin, true)
	}
	if ok, write := r.write(); write {
		return ok
	}
	return r.other(begin)
}

// write reads the statement of the region if it is a write of rows.
func (r *reader) write() (ok, write bool) {
	switch {
	case r.accept("update"):
		return r.update(), true
	case r.accept("delete"):
		return r.delete(), true
	case r.accept("insert"):
		return r.insertInto(true), true
	case r.dialect == SQLite && r.accept("replace"):
		return r.insertInto(false), true
	case r.dialect == Postgres && r.accept("merge"):
		return r.merge(), true
	}
	return false, false
}

// explain reads PostgreSQL's EXPLAIN, after its first word. It runs its
// statement only with ANALYZE.
//
//	EXPLAIN [(options)] [ANALYZE] [VERBOSE] statement
func (r *reader) explain(begin int) bool {
	options := r.i
	if isPunct(r.tok(), '(') && !r.isWord(r.peek(1), "select", "values", "table", "with") && !isPunct(r.peek(1), '(') {
		r.i = r.skip(r.i)
	}
	for r.isWord(r.tok(), "analyze", "analyse", "verbose") {
		r.i++
	}
	for _, t := range r.toks[options:r.i] {
		if option, _ := normal(r.dialect, r.src, t); option == "analyze" || option == "analyse" {
			r.explained = true
			return r.statement()
		}
	}
	if r.isWord(r.tok(), "explain") {
		return r.unreadable(begin)
	}
	return true
}

// with reads WITH, after that word, and the statement behind it. top tells
// whether it is the statement's own and not one of a part of it.
//
//	WITH [RECURSIVE] name [(columns)] AS [[NOT] MATERIALIZED] (statement)
//	[SEARCH ...] [CYCLE ...], ... statement
func (r *reader) with(begin int, top bool) bool {
	if r.dialect != Postgres || !r.isWord(r.peek(1), "as") && !isPunct(r.peek(1), '(') { // else a name
		r.accept("recursive")
	}
	if top {
		r.ledgerAt, r.ledgerWith = r.toks[r.i-1].end, true
	}
	for more := true; more; more = r.acceptPunct(',') {
		name, ok := normal(r.dialect, r.src, r.tok())
		if ok && name == ledgerTable {
			if table, _ := r.mentionGuarded(begin, r.stop); table >= 0 {
				return r.refuse(table, r.i, "a WITH called fencing_tokens would stand before the ledger; give it another name")
			}
		}
		r.step(1)
		if isPunct(r.tok(), '(') {
			r.i = r.skip(r.i)
		}
		as := r.accept("as")
		r.accept("not")
		r.accept("materialized")
		if !ok || !as || !isPunct(r.tok(), '(') {
			return r.unreadable(begin)
		}
		if !r.within(func() bool { return r.part(begin) }) || !r.searchAndCycle(begin) {
			return false
		}
	}
	return r.part(begin)
}

// part reads a statement inside of another, or behind WITH: a write or a read.
func (r *reader) part(begin int) bool {
	if r.accept("with") {
		return r.with(begin, false)
	}
	if ok, write := r.write(); write {
		return ok
	}
	if !isPunct(r.tok(), '(') && !r.isWord(r.tok(), "select", "values", "table") {
		return r.unreadable(begin)
	}
	return r.readsOnly(begin, r.i)
}

// readsOnly refuses tokens lo to the end of the region if a write may hide there
// and the statement that began at begin mentions a registered table, or if a table
// of sqlfence's own comes from a SELECT there.
func (r *reader) readsOnly(begin, lo int) bool {
	if !r.selectsIntoOwn(lo) {
		return false
	}
	w := r.hiddenWrite(lo, r.stop)
	if w < 0 {
		return true
	}
	table, _ := r.mention(begin, r.stop)
	if table < 0 {
		return true
	}
	return r.refuse(table, w, "a write in this place can't be guarded; write it as a statement of its own, or put it into WITH at the top")
}

// searchAndCycle steps over PostgreSQL's clauses behind a recursive WITH.
//
//	SEARCH {BREADTH | DEPTH} FIRST BY column, ... SET column
//	CYCLE column, ... SET column [TO constant DEFAULT constant] USING column
func (r *reader) searchAndCycle(begin int) bool {
	if r.dialect != Postgres {
		return true
	}
	columns := func() {
		for r.step(1); r.acceptPunct(','); r.step(1) {
		}
	}
	if r.accept("search") {
		r.step(1)
		if !r.accept("first", "by") {
			return r.unreadable(begin)
		}
		columns()
		if !r.accept("set") {
			return r.unreadable(begin)
		}
		r.step(1)
	}
	if r.accept("cycle") {
		columns()
		if !r.accept("set") {
			return r.unreadable(begin)
		}
		r.step(1)
		if r.accept("to") {
			r.constants("default")
			if !r.accept("default") {
				return r.unreadable(begin)
			}
			r.constants("using")
		}
		if !r.accept("using") {
			return r.unreadable(begin)
		}
		r.step(1)
	}
	return true
}

// constants steps over a constant, which may have a type before it or fields
// behind it, up to a word that PostgreSQL reserves.
func (r *reader) constants(reserved string) {
	for r.i < r.stop && !r.isWord(r.tok(), reserved) {
		r.i = r.skip(r.i)
	}
}

// unreadable decides about a statement whose structure can't be read: it is
// refused if it mentions a registered table.
func (r *reader) unreadable(begin int) bool {
	if table, at := r.mention(begin, r.stop); table >= 0 {
		return r.refuse(table, at, "this statement can't be read; write it as plain UPDATE, DELETE or INSERT")
	}
	return true
}
