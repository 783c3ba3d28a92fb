package read

// with reads the clause after the word WITH, and the following statement. top reports whether the WITH belongs to the
// whole statement, not to a part.
//
//	WITH [RECURSIVE] name [(columns)] AS [[NOT] MATERIALIZED] (statement)
//	[SEARCH ...] [CYCLE ...], ... statement
func (t walker) with(begin int, top bool) {
	if !t.grammar.SearchAndCycle.Is() || !t.isWord(t.peek(1), "as") && !t.peek(1).Is('(') { // else a name
		t.accept("recursive")
	}
	if top {
		t.CTEAt, t.HasWith = t.Tokens[t.i-1].End, true
	}
	for more := true; more; more = t.acceptPunct(',') {
		if !t.commonTable(begin) {
			return
		}
	}
	t.inner(begin)
}

// commonTable reads one item of a WITH, and reports whether reading can continue after the item.
func (t walker) commonTable(begin int) bool {
	name, ok := t.Name(t.i)
	if ok {
		t.part(NamePart, begin, t.i)
		t.Parts[len(t.Parts)-1].Name = name
	}
	t.step(1)
	if t.tok().Is('(') {
		t.i = t.Skip(t.i)
	}
	as := t.accept("as")
	t.accept("not")
	t.accept("materialized")
	if !ok || !as || !t.tok().Is('(') {
		t.unreadable(begin)
		return false
	}
	stop, ok := t.enter()
	if !ok {
		t.part(TooDeepPart, begin, t.i)
		return false
	}
	t.inner(begin)
	t.leave(stop)
	t.searchAndCycle(begin)
	return true
}

// inner reads a write or a read inside of another statement, or after WITH.
func (t walker) inner(begin int) {
	switch {
	case t.accept("with"):
		t.with(begin, false)
	case t.write():
	case !t.tok().Is('(') && !t.isWord(t.tok(), "select", "values", "table"):
		t.unreadable(begin)
	default:
		t.mayHide = true
	}
}

// searchAndCycle skips the SEARCH and CYCLE clauses after a recursive WITH. MariaDB has only CYCLE.
//
//	SEARCH {BREADTH | DEPTH} FIRST BY column, ... SET column
//	CYCLE column, ... SET column [TO constant DEFAULT constant] USING column
//	CYCLE column, ... RESTRICT
func (t walker) searchAndCycle(begin int) {
	switch {
	case t.grammar.Blocks.Is() && t.accept("cycle"):
		if t.columns(); !t.accept("restrict") {
			t.unreadable(begin)
		}
		return
	case !t.grammar.SearchAndCycle.Is():
		return
	}
	if t.accept("search") {
		t.step(1)
		if !t.accept("first", "by") || !t.columnsUpToSet() {
			t.unreadable(begin)
			return
		}
	}
	if t.accept("cycle") {
		ok := t.columnsUpToSet()
		if ok && t.accept("to") {
			t.constantsUpTo("default")
			ok = t.accept("default")
			t.constantsUpTo("using")
		}
		if !ok || !t.accept("using") {
			t.unreadable(begin)
			return
		}
		t.step(1)
	}
}

// columns steps over column, ...
func (t walker) columns() {
	for t.step(1); t.acceptPunct(','); t.step(1) {
	}
}

// columnsUpToSet steps over column, ... SET column.
func (t walker) columnsUpToSet() bool {
	t.columns()
	if !t.accept("set") {
		return false
	}
	t.step(1)
	return true
}

// constantsUpTo skips the tokens up to a reserved word: a constant, with a type before it and fields after it.
func (t walker) constantsUpTo(reserved string) {
	for t.i < t.stop && !t.isWord(t.tok(), reserved) {
		t.i = t.Skip(t.i)
	}
}
