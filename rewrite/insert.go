package rewrite

import (
	"slices"
	"strconv"
	"strings"
)

// insertInto reads INSERT, or SQLite's REPLACE, after its first word.
//
//	INSERT [OR x] INTO name [AS alias] [(columns)] [OVERRIDING x VALUE]
//	{DEFAULT VALUES | VALUES (...), ... | SELECT ...} [ON CONFLICT ...] [RETURNING ...]
func (r *reader) insertInto(isInsert bool) bool {
	verb := r.i - 1
	or, found := r.orClause()
	if !isInsert {
		or = "REPLACE"
	}
	if !r.accept("into") {
		return r.unreadable(verb)
	}
	t, ok := r.target(verb)
	if !ok || t.table < 0 {
		return ok && (isPunct(r.tok(), '(') ||
			r.isWord(r.tok(), "default", "values", "select", "with", "table", "overriding") || r.unreadable(verb))
	}
	if or != "" {
		return r.refuse(t.table, verb, "OR "+strings.ToUpper(or)+" replaces rows or leaves some of them inserted; write INSERT ... ON CONFLICT")
	}
	if !found {
		r.orAbort(t, verb)
	}
	ins := insertion{reader: r, target: t, verb: verb, key: -1, columns: -1}
	return ins.columnList() && ins.rowSource() && ins.tail()
}

// An insertion is what is known of an INSERT while it is being read.
type insertion struct {
	*reader
	*target
	verb    int // the token INSERT
	columns int // how many columns it names, or -1
	key     int // which of them is the key, or -1

	namesSerial bool // among the columns is the serial
}

// columnList reads the columns and adds the fence and the serial to them.
func (r *insertion) columnList() bool {
	open := r.tok()
	if !isPunct(open, '(') || r.dialect == Postgres && r.queryInBrackets() {
		return true
	}
	r.columns = 0
	for i := r.i + 1; i < int(open.mate); r.columns++ {
		column, ok := normal(r.dialect, r.src, r.toks[i])
		if !ok {
			return r.refuse(r.table, i, "expected a column's name here")
		}
		if column == r.rules.FenceColumn && r.rules.FenceColumn != "" {
			return r.refuse(r.table, i, "it names the fence column, which only sqlfence writes; leave the column out")
		}
		if r.namesTwice(column, i) {
			return r.refuse(r.table, i, "it names a column twice, and which of its values is stored can't be seen; name it once")
		}
		r.namesSerial = r.namesSerial || r.rules.Serial != "" && column == r.rules.Serial
		switch {
		case r.rules.Key == "":
		case column == r.rules.Key:
			r.key = r.columns
		case r.isRowid(column):
			return r.refuse(r.table, i, "the row's number may be its key; name the key column instead")
		}
		for i < int(open.mate) && !isPunct(r.toks[i], ',') {
			i = r.skip(i)
		}
		i++
	}
	if r.columns == 0 {
		return r.refuse(r.table, r.i, "expected a column's name here")
	}
	at := r.toks[open.mate-1].end
	if r.rules.FenceColumn != "" {
		r.insert(at, opColumn, r.target, 0, ", "+r.rules.fence)
	}
	if r.addsSerial() {
		r.insertText(at, ", "+r.rules.serial)
	}
	r.i = int(open.mate) + 1
	return true
}

// namesTwice reports whether the column named by token i of the list stands before
// it there, too, and is one that the table's rules know. SQLite stores the first value.
func (r *insertion) namesTwice(column string, i int) bool {
	if names := r.rules.names(); !slices.Contains(names[2:], column) {
		return false
	}
	for n := r.i + 1; n < i; n++ {
		if before, ok := normal(r.dialect, r.src, r.toks[n]); ok && before == column && !isPunct(r.toks[n-1], '.') {
			return true
		}
	}
	return false
}

// queryInBrackets reports whether a query stands in the bracket that is next, and
// not a list of columns. SQLite has none in this place, and there a column may be
// called with; in PostgreSQL one may be called values.
func (r *insertion) queryInBrackets() bool {
	return r.isWord(r.peek(1), "select", "with", "table") || isPunct(r.peek(1), '(') ||
		r.isWord(r.peek(1), "values") && isPunct(r.peek(2), '(')
}

// mergedRow reads the one row of a MERGE's INSERT, and adds the mark to it.
func (r *insertion) mergedRow() bool {
	if !r.overriding() {
		return false
	}
	begin := r.i
	switch {
	case r.rules.Key != "" && !(r.isWord(r.tok(), "values") && r.key >= 0):
		return r.refuse(r.table, begin, noKeys)
	case r.accept("default", "values"):
		return r.defaultValues(begin)
	case !r.accept("values"):
		return r.refuse(r.table, begin, "expected VALUES here")
	case r.columns < 0 && !r.columnsKnown(begin):
		return false
	}
	return r.rows()
}

// addsSerial reports whether the first serial has to be added to the rows.
func (r *insertion) addsSerial() bool { return r.rules.Serial != "" && !r.namesSerial }

// columnsKnown refuses an INSERT without a list of columns where one has to be added.
func (r *insertion) columnsKnown(at int) bool {
	switch {
	case r.rules.FenceColumn != "":
		return r.refuse(r.table, at, noColumns)
	case r.rules.Serial != "":
		return r.refuse(r.table, at, noSerial)
	}
	return true
}

// addValues adds the mark and the first serial behind the last value of a row.
func (r *insertion) addValues(at, row int32) {
	if r.rules.FenceColumn != "" {
		r.edits = append(r.edits, edit{at: at, op: opValue, target: int32(r.index), row: row, text: ", "})
	}
	if r.addsSerial() {
		r.insertText(at, ", 1")
	}
}

// Reasons that stand in more than one place.
const (
	noColumns = "the fence column can't be added without a list of columns; name them: INSERT INTO table (column, ...)"
	noSerial  = "the serial column can't be added without a list of columns; name them: INSERT INTO table (column, ...)"
	noKeys    = "the rows' keys can't be seen; name the key column and give its values as INSERT ... VALUES"
)

// overriding steps over OVERRIDING {SYSTEM | USER} VALUE. With USER an identity
// column gets the database's value, not the one that is given.
func (r *insertion) overriding() bool {
	if !r.accept("overriding") {
		return true
	}
	if r.rules.Key != "" && !r.isWord(r.tok(), "system") {
		return r.refuse(r.table, min(r.i, r.stop), "the rows' keys can't be seen where the database may choose them; leave OVERRIDING USER VALUE out")
	}
	r.step(2)
	return true
}

// rowSource reads where the rows come from, and adds the mark to them.
func (r *insertion) rowSource() bool {
	if !r.overriding() {
		return false
	}
	begin := r.i
	var ok bool
	switch {
	case r.rules.Key != "" && !(r.isWord(r.tok(), "values") && r.key >= 0):
		return r.refuse(r.table, r.i, noKeys)
	case r.accept("default", "values"):
		return r.defaultValues(begin)
	case r.columns < 0 && !r.columnsKnown(r.i):
		return false
	case r.rules.Key != "":
		r.i++
		if ok = r.rows(); ok && r.isWord(r.tok(), "order", "limit", "offset", "fetch") {
			r.until("on", "returning")
		}
	default:
		ok = r.query()
	}
	if ok && r.rules.Ledger && r.dialect == SQLite {
		// The rows pass one by one through the ledger's condition.
		r.insertText(r.toks[begin].start, "SELECT * FROM (")
		r.ledgerBehind(r.toks[r.i-1].end)
	}
	return ok
}

func (r *insertion) ledgerBehind(at int32) {
	r.insertText(at, ") WHERE ")
	r.insert(at, opAnd, r.target, setOf(ruleLedger), "")
}

// defaultValues turns DEFAULT VALUES, at begin, into a row of the mark alone.
// The words stay, in comments.
func (r *insertion) defaultValues(begin int) bool {
	if r.columns >= 0 {
		return r.refuse(r.table, begin, "DEFAULT VALUES after a list of columns can't be read")
	}
	deflt, values := r.toks[begin], r.toks[begin+1]
	ledger := r.rules.Ledger && r.dialect == SQLite
	fence, serial := r.rules.FenceColumn != "", r.rules.Serial != ""
	if !fence && !serial && !ledger {
		return true
	}
	column, separator := "_rowid_", "" // NULL there is the default: the next free one
	switch {
	case serial:
		column, separator = r.rules.serial, ", "
	case fence:
		column = r.rules.fence
	}
	r.insertText(deflt.start, "("+column)
	if serial && fence {
		r.insert(deflt.start, opColumn, r.target, 0, ", "+r.rules.fence)
	}
	r.insertText(deflt.start, ") /*")
	r.insertText(deflt.end, "*/")
	if ledger {
		r.insertText(values.start, "SELECT * FROM (")
	}
	r.insertText(values.end, " (")
	switch {
	case serial:
		r.insertText(values.end, "1")
	case !fence:
		r.insertText(values.end, "NULL")
	}
	if fence {
		r.insert(values.end, opValue, r.target, 0, separator)
	}
	r.insertText(values.end, ")")
	if ledger {
		r.ledgerBehind(values.end)
	}
	return true
}

// rows reads the rows after VALUES.
func (r *insertion) rows() bool {
	// The rows of an INSERT, and those of all arms of a MERGE, are counted on.
	for row := int32(len(r.targets[r.index].Keys)); ; row++ {
		open := r.tok()
		if !isPunct(open, '(') || int(open.mate) == r.i+1 {
			return r.refuse(r.table, r.i, "expected a row of values here")
		}
		if r.key >= 0 && !r.keyValue(r.i+1, int(open.mate)) {
			return false
		}
		r.addValues(r.toks[open.mate-1].end, row)
		r.i = int(open.mate) + 1
		if !r.acceptPunct(',') {
			return true
		}
	}
}

// keyValue notes where the key's value stands in the row of tokens lo to hi.
func (r *insertion) keyValue(lo, hi int) bool {
	for n := 0; n < r.key; n++ {
		for lo < hi && !isPunct(r.toks[lo], ',') {
			lo = r.skip(lo)
		}
		lo++
	}
	if lo < hi {
		if v, next, ok := r.value(lo); ok && (next == hi || isPunct(r.toks[next], ',')) {
			keys := &r.targets[r.index].Keys
			*keys = append(*keys, v)
			return true
		}
	}
	return r.refuse(r.table, min(lo, hi), "the row's key can't be seen; give it as an argument or as a plain constant")
}

// constant reads a placeholder, an integer or a plain string.
func (r *reader) constant(t token) (KeyValue, bool) {
	s := r.src[t.start:t.end]
	switch {
	case t.kind == param && s[0] == '$' && r.dialect == SQLite && s[1:] != strconv.Itoa(int(t.mate)):
		return KeyValue{Name: s[1:]}, !isDigit(s[1]) // drivers bind $2 by its number or by its place
	case t.kind == param && s[0] != '?' && r.dialect == SQLite:
		return KeyValue{Ordinal: int(t.mate), Name: s[1:]}, true
	case t.kind == param:
		return KeyValue{Ordinal: int(t.mate)}, true
	case t.kind == number && strings.Trim(s, "0123456789") == "" && (s == "0" || s[0] != '0'):
		return KeyValue{Text: s}, true
	case t.kind == text && s[0] == '\'' && !strings.Contains(s, `\`):
		return KeyValue{Text: unquote(s)}, true
	}
	return KeyValue{}, false
}

// value reads a constant, which may have a cast that keeps its text, and returns
// the index of the token behind it.
//
//	constant [::type ...] | CAST(constant AS type) | type 'constant'
func (r *reader) value(i int) (v KeyValue, next int, ok bool) {
	if !r.isWord(r.toks[i], "cast") || !isPunct(r.toks[i+1], '(') {
		return r.castConstant(i)
	}
	v, next, ok = r.castConstant(i + 2)
	if !ok || !r.isWord(r.toks[next], "as") {
		return v, next, false
	}
	next, ok = r.keepingType(next + 1)
	return v, next + 1, ok && next == int(r.toks[i+1].mate)
}

// castConstant is value without CAST.
func (r *reader) castConstant(i int) (v KeyValue, next int, ok bool) {
	if typed, ok := r.keepingType(i); ok && r.dialect == Postgres {
		v, ok = r.constant(r.toks[typed])
		return v, typed + 1, ok && r.toks[typed].kind == text
	}
	v, ok = r.constant(r.toks[i])
	for next = i + 1; ok && r.dialect == Postgres && isPunct(r.toks[next], ':') && isPunct(r.toks[next+1], ':'); {
		next, ok = r.keepingType(next + 2)
	}
	return v, next, ok
}

// keepingType reads the name of a type in which a key's text is stored as it is,
// or which refuses it: not one that rounds, cuts or pads. SQLite's CAST refuses nothing.
func (r *reader) keepingType(i int) (next int, ok bool) {
	if r.dialect == SQLite {
		return i + 1, r.isWord(r.toks[i], "text")
	}
	if r.isWord(r.toks[i], "pg_catalog") && isPunct(r.toks[i+1], '.') {
		i += 2
	}
	next = i + 1
	switch {
	case r.isWord(r.toks[i], "character") && r.isWord(r.toks[next], "varying"):
		next++
	case !r.isWord(r.toks[i], "smallint", "int", "integer", "bigint", "int2", "int4", "int8", "uuid", "text", "varchar"):
		return i, false
	}
	return next, !isPunct(r.toks[next], '(') && !isPunct(r.toks[next], '[') && !r.isWord(r.toks[next], "array")
}

// query reads [WITH ...] and one or several SELECT or VALUES, combined by UNION,
// INTERSECT and EXCEPT, and adds the mark to the rows of each.
func (r *insertion) query() bool {
	if r.accept("with") && !r.withOfRead() {
		return false
	}
	for {
		if !r.queryArm() {
			return false
		}
		if !r.accept("union") && !r.accept("intersect") && !r.accept("except") {
			break
		}
		if !r.accept("all") {
			r.accept("distinct")
		}
	}
	r.until("on", "returning")
	return true
}

// withOfRead steps over a WITH whose parts only read: that no write hides in
// them was seen when the target was read.
func (r *insertion) withOfRead() bool {
	r.accept("recursive")
	for more := true; more; more = r.acceptPunct(',') {
		for r.i < r.stop && !r.isWord(r.tok(), "as") {
			r.i = r.skip(r.i)
		}
		r.accept("as")
		r.accept("not")
		r.accept("materialized")
		if !isPunct(r.tok(), '(') {
			return r.refuse(r.table, min(r.i, r.stop), "this WITH can't be read")
		}
		r.i = r.skip(r.i)
		if !r.searchAndCycle(r.i) {
			return false
		}
	}
	return true
}

// queryArm reads one SELECT, VALUES or query in brackets, up to UNION,
// INTERSECT, EXCEPT or the end.
func (r *insertion) queryArm() bool {
	switch {
	case isPunct(r.tok(), '('):
		if !r.within(func() bool {
			return r.query() && (r.i == r.stop || r.refuse(r.table, r.i, "this part of the statement can't be read"))
		}) {
			return false
		}
	case r.accept("values"):
		if !r.rows() {
			return false
		}
	case r.accept("select"):
		if !r.selection() {
			return false
		}
	default:
		return r.refuse(r.table, min(r.i, r.stop), "rows from this can't be guarded; write INSERT ... VALUES or INSERT ... SELECT")
	}
	r.until("union", "intersect", "except", "on", "returning")
	return true
}

// selection reads the columns of a SELECT and adds the mark to them.
func (r *insertion) selection() bool {
	lo := r.i
	follow := []string{"from", "where", "group", "having", "union", "intersect", "except", "window", "order", "limit", "on", "returning"}
	if r.dialect == Postgres { // no words of SQLite's, or none that stand here
		follow = append(follow, "offset", "fetch", "for", "into")
	}
	hi := r.until(follow...)
	if r.rules.FenceColumn == "" && !r.addsSerial() {
		return true
	}
	if lo == hi || lo+1 == hi && r.isWord(r.toks[lo], "distinct", "all") {
		return r.refuse(r.table, hi, "expected columns here")
	}
	r.addValues(r.toks[hi-1].end, 0)
	return true
}

// tail reads what follows the rows.
func (r *insertion) tail() bool {
	onConflict := r.i
	for r.accept("on", "conflict") {
		if !r.onConflict() {
			return false
		}
	}
	if !r.versionedUpsert(onConflict) {
		return false
	}
	if r.returning() {
		r.until()
	}
	if r.i != r.stop {
		return r.refuse(r.table, r.i, "this part of the statement can't be read")
	}
	return true
}

// onConflict reads one ON CONFLICT clause and guards the row that it updates.
//
//	[(columns) [WHERE ...] | ON CONSTRAINT name] DO {NOTHING | UPDATE SET ... [WHERE ...]}
func (r *insertion) onConflict() bool {
	if isPunct(r.tok(), '(') {
		r.i = r.skip(r.i)
		if r.accept("where") {
			r.until("do")
		}
	} else if r.accept("on", "constraint") {
		r.step(1)
	}
	switch {
	case r.accept("do", "nothing"):
		return true
	case !r.accept("do", "update", "set"):
		return r.refuse(r.table, r.i, "expected DO NOTHING or DO UPDATE SET here")
	}
	if !r.versions(r.target, r.verb) {
		return false
	}
	r.updates = true
	setEnd, ok := r.assignments(r.target, true, "where", "on", "returning")
	if !ok {
		return false
	}
	r.assign(r.target, setEnd)
	prev, lo, hi := r.toks[r.i-1].end, 0, 0
	if r.accept("where") {
		lo = r.i
		hi = r.until("on", "returning")
		if lo == hi {
			return r.refuse(r.table, lo, "a condition is missing here")
		}
		if !r.ownSerial(r.target, lo, hi) {
			return false
		}
	}
	if r.inWhere(r.rules) {
		r.whereEdits(r.target, prev, lo, hi, true, false)
	}
	return true
}
