package read

import "github.com/sqlfence/sqlfence/rewrite/internal/advise"

// blocks parses the statements of MySQL and MariaDB, which have blocks of several statements.
type blocks struct{ walker }

// mysqlWrite reads the statement of the region if it is a write of rows, or a statement that ANALYZE runs.
func (t blocks) mysqlWrite() bool {
	switch {
	case t.accept("update"):
		t.mysqlUpdate()
	case t.accept("delete"):
		t.mysqlDelete()
	case t.accept("insert"):
		t.mysqlInsert(Insert)
	case t.accept("replace"):
		t.mysqlInsert(Replace)
	case t.depth == 0 && t.analyzes():
		t.Explained = true
		t.statement()
	default:
		return false
	}
	return true
}

// analyzes skips the words that run a statement and show its plan. ANALYZE TABLE is a different statement.
//
//	ANALYZE [FORMAT = x] statement
//	{EXPLAIN | DESCRIBE | DESC} ANALYZE [FORMAT = x] [INTO @a] statement
func (t blocks) analyzes() bool {
	begin := t.i
	explains := t.isWord(t.tok(), "explain", "describe", "desc")
	if explains {
		t.i++
	}
	if !t.accept("analyze") || t.isWord(t.tok(), "table", "tables", "local", "no_write_to_binlog") {
		t.i = begin
		return false
	}
	if t.accept("format") && t.acceptPunct('=') {
		t.step(1)
	} else {
		t.Tabular = !explains
	}
	if t.accept("into") {
		t.step(1)
	}
	return true
}

// modifiers skips the words after a verb. It accepts each word after any verb, as TiDB does: MySQL and MariaDB reserve
// these words, so none is a table's name. IGNORE has the meaning of SQLite's OR IGNORE.
func (t blocks) modifiers(head *Write, more ...string) {
	for t.isWord(t.tok(), "low_priority", "high_priority", "delayed", "ignore") || t.isWord(t.tok(), more...) {
		if t.isWord(t.tok(), "ignore") {
			head.Or, head.OrAt = OrIgnore, int32(t.i)
		}
		t.i++
	}
}

// mysqlUpdate reads UPDATE after its first word.
//
//	UPDATE [LOW_PRIORITY | HIGH_PRIORITY | DELAYED] [IGNORE] tables SET list
//	[WHERE ...] [ORDER BY ...] [LIMIT ...] [RETURNING ...]
func (t blocks) mysqlUpdate() {
	head := Write{Verb: Update, At: int32(t.i - 1)}
	t.modifiers(&head)
	from, ok := t.tables()
	if !ok || !t.isWord(t.tok(), "set") {
		t.unreadable(int(head.At))
		return
	}
	t.writesTo(&head, from, from.tables)
}

// mysqlDelete reads DELETE after its first word.
//
//	DELETE [LOW_PRIORITY | HIGH_PRIORITY | DELAYED] [QUICK] [IGNORE]
//	{FROM table [WHERE ...] [ORDER BY ...] [LIMIT ...] [RETURNING ...]
//	| name[.*], ... FROM tables [WHERE ...] | FROM name[.*], ... USING tables [WHERE ...]}
func (t blocks) mysqlDelete() {
	head := Write{Verb: Delete, At: int32(t.i - 1)}
	t.modifiers(&head, "quick")
	if t.accept("from") && !t.deletesMultiTable() {
		from, ok := t.tables()
		if !ok || from.joined || !t.endsTables() {
			t.unreadable(int(head.At))
			return
		}
		t.writesTo(&head, from, from.tables)
		return
	}
	names, ok := t.deletedNames()
	ok = ok && (t.accept("from") || t.accept("using"))
	from, isFrom := t.tables()
	deleted, known := from.resolve(names)
	if !ok || !isFrom || !known || !t.endsTables() {
		t.unreadable(int(head.At))
		return
	}
	t.writesTo(&head, from, deleted)
}

// endsTables reports whether the tables of a DELETE may end here.
func (t blocks) endsTables() bool {
	return t.i == t.stop || t.isWord(t.tok(), "where", "order", "limit", "returning")
}

// mysqlClauses reads the clauses after the tables of an UPDATE or DELETE.
func (t blocks) mysqlClauses(w *Write) bool {
	if w.Verb == Update && !t.updates(w) {
		return false
	}
	w.From = int32(t.i)
	if !t.where(&w.Where, "order", "limit", "returning") {
		return false
	}
	if t.isWord(t.tok(), "order", "limit") {
		w.Limit = int32(t.i)
		t.until("returning")
	}
	return t.mysqlReturning(w)
}

// mysqlReturning reads RETURNING to the end. In MySQL, RETURNING may be a column's name before another clause: the
// write is then unreadable.
func (t blocks) mysqlReturning(w *Write) bool {
	if t.returning(w) {
		t.until("from", "where", "on", "order", "limit", "group", "having", "union", "for", "into")
	}
	return t.ends()
}

// mysqlInsert reads INSERT or REPLACE after its first word.
//
//	INSERT [LOW_PRIORITY | DELAYED | HIGH_PRIORITY] [IGNORE] [INTO] name [PARTITION (...)]
//	{SET list | [(columns)] {{VALUES | VALUE} [ROW](...), ... | SELECT ...}} [AS alias [(columns)]]
//	[ON DUPLICATE KEY UPDATE list] [RETURNING ...]
func (t blocks) mysqlInsert(verb Verb) {
	head := Write{Verb: verb, At: int32(t.i - 1)}
	t.modifiers(&head)
	t.accept("into")
	w := t.target(&head)
	if w == nil {
		return
	}
	t.partition()
	switch {
	case !t.tok().Is('(') && !t.isWord(t.tok(), "values", "value", "select", "with", "table", "set"):
		t.unreadable(int(w.At))
	default:
		_ = t.mysqlRows(w) && t.rowAlias(&w.Insertion) && t.onDuplicate(w)
		t.finish(w)
	}
}

// mysqlRows reads the source of an INSERT's rows.
func (t blocks) mysqlRows(w *Write) bool {
	ins := &w.Insertion
	if t.accept("set") {
		ins.Source, ins.SourceAt = Assigned, int32(t.i-1)
		return t.assignments(&w.Set, "on", "returning") && t.endsAtAlias(&w.Set)
	}
	if !t.columnList(ins) {
		return false
	}
	for _, c := range ins.Columns {
		if c.Hi-c.Lo != 1 {
			return t.fail(advise.ExpectedColumn, int(c.Lo)) // table.column
		}
	}
	begin, first := t.i, len(t.rowArms)
	ins.SourceAt = int32(begin)
	var ok bool
	if t.accept("values") || t.accept("value") {
		ins.Source = Values
		ok = t.rows()
		t.rowArms[len(t.rowArms)-1].Last = ok
	} else {
		ins.Source = Query
		ok = t.query()
	}
	ins.Arms = t.rowArms[first:len(t.rowArms):len(t.rowArms)]
	if ok {
		ins.Rows = rangeOf(begin, t.i)
	}
	return ok
}

// endsAtAlias cuts a SET list off before AS and the alias of the row.
func (t blocks) endsAtAlias(set *Assignments) bool {
	last := &set.Items[len(set.Items)-1]
	for i := int(set.Lo); i < int(set.Hi); i = t.Skip(i) {
		switch {
		case !t.isWord(&t.Tokens[i], "as"):
		case i <= int(last.Names.Hi)+1:
			return t.fail(advise.Unexpected, i)
		default:
			t.i, set.Hi, last.Hi = i, int32(i), int32(i)
			return true
		}
	}
	return true
}

// rowAlias parses the alias of the rows after VALUES or SET, and the aliases of their columns.
func (t blocks) rowAlias(ins *Insertion) bool {
	if ins.Source == Query || !t.accept("as") {
		return true
	}
	alias, ok := t.Name(t.i)
	if !ok {
		return t.fail(advise.ExpectedAlias, t.i)
	}
	ins.RowAlias = alias
	t.i++
	if t.tok().Is('(') {
		ins.RowColumns = rangeOf(t.i+1, int(t.tok().Mate))
		t.i = t.Skip(t.i)
	}
	return true
}

// onDuplicate parses the clauses after the rows of an INSERT: ON DUPLICATE KEY UPDATE and RETURNING.
func (t blocks) onDuplicate(w *Write) bool {
	w.ConflictsAt = int32(t.i)
	if w.Verb == Insert && t.accept("on", "duplicate", "key", "update") {
		first := len(t.conflicts)
		t.claim(t.i - 1)
		c := Conflict{At: int32(t.i - 4), Update: true}
		ok := t.assignments(&c.Set, "returning")
		c.Where.At = int32(t.i)
		t.conflicts = append(t.conflicts, c)
		w.Conflicts = t.conflicts[first:len(t.conflicts):len(t.conflicts)]
		if !ok {
			return false
		}
	}
	w.ConflictsEnd = int32(t.i)
	return t.mysqlReturning(w)
}
