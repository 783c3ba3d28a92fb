package read

import (
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/rewrite/internal/advise"
)

// insert reads INSERT, or SQLite's REPLACE, after its first word.
//
//	INSERT [OR x] INTO name [AS alias] [(columns)] [OVERRIDING x VALUE]
//	{DEFAULT VALUES | VALUES (...), ... | SELECT ...} [ON CONFLICT ...] [RETURNING ...]
func (t walker) insert(verb Verb) {
	head := Write{Verb: verb, At: int32(t.i - 1)}
	t.or(&head)
	if !t.accept("into") {
		t.unreadable(int(head.At))
		return
	}
	w := t.target(&head)
	switch {
	case w == nil:
	case !t.tok().Is('(') && !t.isWord(t.tok(), "default", "values", "select", "with", "table", "overriding"):
		t.unreadable(int(w.At))
	default:
		_ = t.columnList(&w.Insertion) && t.rowSource(&w.Insertion) && t.upserts(w)
		t.finish(w)
	}
}

// columnList parses an INSERT's list of columns, if there is one.
func (t walker) columnList(ins *Insertion) bool {
	open := t.tok()
	if !open.Is('(') || t.grammar.InBrackets.Is() && t.isQueryInBrackets() {
		return true
	}
	lo, hi, first, ok := t.i+1, int(open.Mate), len(t.ranges), true
	if lo == hi && !t.grammar.OnDuplicate.Is() {
		return t.fail(advise.ExpectedColumn, t.i)
	}
	for i := lo; i < hi && ok; {
		if !t.grammar.Lex.IsName(t.Src, &t.Tokens[i]) {
			ok = t.fail(advise.ExpectedColumn, i)
			break
		}
		end := t.ItemEnd(i, hi)
		t.addRange(rangeOf(i, end), first, i-lo, hi-lo)
		i = end + 1
	}
	ins.Columns = t.ranges[first:len(t.ranges):len(t.ranges)]
	if ok {
		ins.List = rangeOf(lo, hi)
		t.i = hi + 1
	}
	return ok
}

// isQueryInBrackets reports whether the next bracket contains a query, not a list of columns. In PostgreSQL a column
// may be named values, so VALUES must precede a bracket. SQLite allows no query in this place.
func (t walker) isQueryInBrackets() bool {
	return t.isWord(t.peek(1), "select", "with", "table") || t.peek(1).Is('(') ||
		t.isWord(t.peek(1), "values") && t.peek(2).Is('(')
}

// overriding steps over OVERRIDING {SYSTEM | USER} VALUE.
func (t walker) overriding(ins *Insertion) {
	if t.accept("overriding") {
		ins.Overriding = int32(t.i)
		t.step(2)
	}
	ins.SourceAt = int32(t.i)
}

// rowSource reads the source of an INSERT's rows.
func (t walker) rowSource(ins *Insertion) bool {
	t.overriding(ins)
	begin, first := t.i, len(t.rowArms)
	if t.accept("default", "values") {
		return t.defaults(ins)
	}
	ins.Source = Query
	if t.isWord(t.tok(), "values") {
		ins.Source = Values
	}
	ok := t.query()
	ins.Arms = t.rowArms[first:len(t.rowArms):len(t.rowArms)]
	if len(ins.Arms) > 1 {
		ins.Arms[0].Last = false
	}
	if ok {
		ins.Rows = rangeOf(begin, t.i)
	}
	return ok
}

// mergedRow reads the row that a MERGE inserts.
func (t walker) mergedRow(ins *Insertion) bool {
	t.overriding(ins)
	begin, first := t.i, len(t.rowArms)
	if t.accept("default", "values") {
		return t.defaults(ins)
	}
	if !t.accept("values") {
		return t.fail(advise.ExpectedValues, begin)
	}
	ins.Source = Values
	ok := t.rows()
	ins.Arms = t.rowArms[first:len(t.rowArms):len(t.rowArms)]
	if ok {
		ins.Rows = rangeOf(begin, t.i)
	}
	return ok
}

// defaults completes an INSERT with DEFAULT VALUES, after these words.
func (t walker) defaults(ins *Insertion) bool {
	ins.Source = Defaults
	if ins.List.Lo > 0 {
		return t.fail(advise.DefaultsAfterColumns, t.i-2)
	}
	ins.Rows = rangeOf(t.i-2, t.i)
	return true
}

// addRange appends a range to t.ranges, in which the current list begins at first. To estimate the memory to reserve,
// it takes the number of all tokens of the list, and of those done, that is, read so far.
func (t walker) addRange(s lex.Range, first, done, all int) {
	if n := len(t.ranges); n == cap(t.ranges) {
		t.ranges = lex.More(t.ranges, n-first, done, all)
	}
	t.ranges = append(t.ranges, s)
}

// rows parses the rows after VALUES.
func (t walker) rows() bool {
	begin, first, ok := t.i, len(t.ranges), true
	for {
		if t.grammar.OnDuplicate.Is() {
			t.accept("row")
		}
		open := t.tok()
		if !open.Is('(') || int(open.Mate) == t.i+1 && !t.grammar.OnDuplicate.Is() {
			ok = t.fail(advise.ExpectedRow, t.i)
			break
		}
		t.addRange(rangeOf(t.i+1, int(open.Mate)), first, t.i-begin, t.stop-begin)
		t.i = int(open.Mate) + 1
		if !t.acceptPunct(',') {
			break
		}
	}
	arm := RowArm{Rows: t.ranges[first:len(t.ranges):len(t.ranges)], After: int32(t.i)}
	arm.Last = ok && (t.i >= t.stop || t.isWord(t.tok(), "order", "limit", "offset", "fetch", "returning") ||
		t.isWord(t.tok(), "on") && !t.isNoClause(t.i))
	t.addArm(arm)
	return ok
}

func (t walker) addArm(arm RowArm) {
	if n := len(t.rowArms); n == cap(t.rowArms) {
		t.rowArms = lex.More(t.rowArms, n, t.i, t.stop)
	}
	t.rowArms = append(t.rowArms, arm)
}

// query reads [WITH ...] and one or several SELECT or VALUES, combined by UNION,
// INTERSECT and EXCEPT.
func (t walker) query() bool {
	if t.accept("with") && !t.withOfRead() {
		return false
	}
	for {
		if !t.queryArm() {
			return false
		}
		if !t.accept("union") && !t.accept("intersect") && !t.accept("except") {
			break
		}
		if !t.accept("all") {
			t.accept("distinct")
		}
	}
	t.until("on", "returning")
	return true
}

// withOfRead skips the WITH of an INSERT's query. It looks for no write in there: strays finds each one afterwards.
func (t walker) withOfRead() bool {
	t.accept("recursive")
	for more := true; more; more = t.acceptPunct(',') {
		t.constantsUpTo("as")
		t.accept("as")
		t.accept("not")
		t.accept("materialized")
		if !t.tok().Is('(') {
			return t.fail(advise.BadWith, min(t.i, t.stop))
		}
		t.i = t.Skip(t.i)
		t.searchAndCycle(t.i)
	}
	return true
}

// queryArm reads one SELECT, VALUES or query in brackets, up to UNION,
// INTERSECT, EXCEPT or the end.
func (t walker) queryArm() bool {
	ok := false
	switch {
	case t.tok().Is('('):
		stop, entered := t.enter()
		if !entered {
			return t.fail(advise.TooDeep, t.i)
		}
		ok = t.query() && t.ends()
		t.leave(stop)
	case t.accept("values"):
		ok = t.rows() && t.afterRows()
	case t.accept("select"):
		ok = t.selection()
	default:
		t.fail(advise.NotRows, min(t.i, t.stop))
	}
	// In a SELECT without FROM, selection has stopped at one of these words. Elsewhere such a word may be a name.
	if ok && !(t.i < t.stop && t.isWord(t.tok(), "union", "intersect", "except", "returning")) {
		t.until("union", "intersect", "except", "on", "returning")
	}
	return ok
}

// afterRows refuses a clause that may not follow the rows of a VALUES. In another database such a clause may change
// rows, as ON DUPLICATE KEY UPDATE does.
func (t walker) afterRows() bool {
	last := t.rowArms[len(t.rowArms)-1].Last
	return last || t.isWord(t.tok(), "union", "intersect", "except") || t.fail(advise.Unexpected, t.i)
}

// selection reads the columns of a SELECT.
func (t walker) selection() bool {
	lo := t.i
	hi := t.until(t.grammar.AfterColumns...)
	t.addArm(RowArm{
		Select:  true,
		Columns: rangeOf(lo, hi),
		Empty:   lo == hi || lo+1 == hi && t.isWord(&t.Tokens[lo], "distinct", "all"),
		After:   int32(hi),
	})
	return true
}

// upserts parses the clauses after the rows of an INSERT: ON CONFLICT and RETURNING.
func (t walker) upserts(w *Write) bool {
	w.ConflictsAt = int32(t.i)
	first := len(t.conflicts)
	for t.accept("on", "conflict") {
		c := Conflict{At: int32(t.i - 2)}
		ok := t.onConflict(&c)
		if n := len(t.conflicts); n == cap(t.conflicts) {
			t.conflicts = lex.More(t.conflicts, n, t.i, t.stop)
		}
		t.conflicts = append(t.conflicts, c)
		w.Conflicts = t.conflicts[first:len(t.conflicts):len(t.conflicts)]
		if !ok {
			return false
		}
	}
	w.ConflictsEnd = int32(t.i)
	if t.returning(w) {
		t.i = t.stop
	}
	return t.ends()
}

// onConflict reads one ON CONFLICT clause, starting after the words ON CONFLICT.
//
//	[(columns) [WHERE ...] | ON CONSTRAINT name] DO {NOTHING | UPDATE SET ... [WHERE ...]}
func (t walker) onConflict(c *Conflict) bool {
	if t.tok().Is('(') {
		t.i = t.Skip(t.i)
		if t.accept("where") {
			t.until("do")
		}
	} else if t.accept("on", "constraint") {
		t.step(1)
	}
	if t.accept("do", "nothing") {
		return true
	}
	if !t.accept("do", "update", "set") {
		return t.fail(advise.ExpectedConflictAction, t.i)
	}
	t.claim(t.i - 2)
	c.Update = true
	return t.assignments(&c.Set, "where", "on", "returning") && t.where(&c.Where, "on", "returning")
}
