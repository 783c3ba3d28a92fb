package rules

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/rewrite/internal/advise"
	"github.com/sqlfence/sqlfence/rewrite/internal/read"
	"github.com/sqlfence/sqlfence/rewrite/internal/render"
)

// An inserting plans the rows of an INSERT, and the arms of a MERGE.
type inserting struct{ writing }

// An insertion has the facts about the columns of an INSERT that is being planned.
type insertion struct {
	listed      bool           // the INSERT lists its columns, or no column gets a value
	empty       bool           // no column gets a value
	key         int            // index of the key among the listed columns, or -1
	names       render.RuleSet // rules with a column that the INSERT lists
	queried     bool           // the rows come from a query
	doubtful    bool           // the stored keys may differ from the keys in the text
	returned    bool           // the text doesn't show the keys, and the guard checks each row's key after it is stored
	unmarked    bool           // the text doesn't show the keys, so the fence column gets its default
	tokenChecks bool           // the fence column's value in the first row contains the ledger's check
	valueChecks bool           // another value of the first row contains the ledger's check
}

// insertInto plans an INSERT.
func (p inserting) insertInto(w *read.Write) bool {
	if !p.orClause(w) {
		return false
	}
	p.orAbort(w)
	if w.Insertion.Source == read.Assigned {
		if !p.assignedRow(w) {
			return false
		}
	} else if !p.columnList(&w.Insertion) || !p.rowSource(w, &w.Insertion) {
		return false
	}
	for i := range w.Conflicts {
		if !p.onConflict(w, &w.Conflicts[i]) {
			return false
		}
	}
	if w.ConflictsEnd > 0 && !p.versionedUpsert(w) {
		return false
	}
	p.checkStored(w)
	p.returns(w)
	return p.readable(w)
}

// orClause refuses INSERT OR FAIL and an OR clause with an unknown word, and plans INSERT OR REPLACE.
func (p inserting) orClause(w *read.Write) bool {
	if w.Or == read.OrFail || w.Or == read.OrOther {
		return p.refuseTarget(w.At, advise.InsertOr, strings.ToUpper(p.TokenText(w.OrAt)), p.Dialect.Upsert(nil))
	}
	return p.replaces(w)
}

// columnList plans the list of columns.
func (p inserting) columnList(ins *read.Insertion) bool {
	empty := isEmpty(ins)
	p.insertion = insertion{listed: !ins.List.Empty() || empty, empty: empty, key: -1,
		queried: ins.Source == read.Query}
	for n, c := range ins.Columns {
		column, _ := p.Name(int(c.Lo))
		if p.namesTwice(column, ins.Columns[0].Lo, c.Lo) {
			return p.refuseTarget(c.Lo, advise.NamedTwice)
		}
		if !p.inserts(column, c.Lo, n) {
			return false
		}
	}
	return true
}

// isEmpty reports whether the rows of an INSERT have no values: MySQL's () VALUES ().
func isEmpty(ins *read.Insertion) bool {
	if ins.Source != read.Values || len(ins.Columns) > 0 || ins.Rows.Empty() {
		return false
	}
	for _, arm := range ins.Arms {
		if slices.ContainsFunc(arm.Rows, func(row lex.Range) bool { return !row.Empty() }) {
			return false
		}
	}
	return true
}

// inserts lets each rule decide about column n of the INSERT's list, which is named at a token.
func (p inserting) inserts(column string, token int32, n int) bool {
	for _, r := range p.target.rules.Has {
		if !precedence[r].inserted(p, column, token, n) {
			return false
		}
	}
	return true
}

// addColumns adds the columns of the rules to the lists of columns.
func (p inserting) addColumns(ins *read.Insertion) {
	if p.insertion.empty {
		p.addList(ins)
		return
	}
	for _, list := range []lex.Range{ins.List, ins.RowColumns} {
		if !list.Empty() {
			at := p.After(list.Hi)
			p.eachAdded(func(r int, a added) { p.addColumn(at, r, a, ", ") })
		}
	}
}

// addList adds the rules' columns to rows without values. Columns with a constant value come first: any other column,
// with the comma before it, is left out of a write without a token.
func (p inserting) addList(ins *read.Insertion) {
	listed, at := ins.List.Lo > 0, p.Offset(ins.SourceAt)
	if listed {
		at = p.Offset(ins.List.Lo)
	} else {
		p.insertText(at, "(")
	}
	p.eachSeparated(func(r int, a added, separator string) { p.addColumn(at, r, a, separator) })
	if !listed {
		p.insertText(at, ") ")
	}
}

// eachSeparated calls f for each column that the rules add, in the order of addList, with the separator before the
// column.
func (p inserting) eachSeparated(f func(r int, a added, separator string)) {
	separator := ""
	for _, always := range [...]bool{true, false} {
		p.eachAdded(func(r int, a added) {
			if (a.value != "") == always {
				f(r, a, separator)
				separator = ", "
			}
		})
	}
}

// eachAdded calls f for each column that the rules add to the rows.
func (p inserting) eachAdded(f func(r int, a added)) {
	for _, r := range p.target.rules.Has {
		unmarked := r == render.RuleRowFence && p.insertion.unmarked
		if a := precedence[r].adds(p.target.rules); a.column != "" && !p.insertion.names.Has(r) && !unmarked {
			f(r, a)
		}
	}
}

// addColumn adds a rule's column to a list of columns, after a separator.
func (p inserting) addColumn(at int32, r int, a added, separator string) {
	if a.value != "" {
		p.insertText(at, separator+a.column)
		return
	}
	p.insert(at, render.OpColumn, render.SetOf(r), separator+a.column)
}

// addValue adds the value of a rule's column to a row, after a separator.
func (p inserting) addValue(at int32, r int, a added, separator string, row int32) {
	if a.value != "" {
		p.insertText(at, separator+a.value)
		return
	}
	p.insert(at, render.OpValue, render.SetOf(r), separator)
	p.fragments[len(p.fragments)-1].Row = row
}

// namesTwice reports whether the list that begins at lo names a rule's column a second time at token. SQLite stores the
// first value.
func (p inserting) namesTwice(column string, lo, token int32) bool {
	if !slices.Contains(p.target.rules.Owned, column) {
		return false
	}
	for i := lo; i < token; i++ {
		if before, ok := p.Name(int(i)); ok && before == column && !p.Tokens[i-1].Is('.') {
			return true
		}
	}
	return false
}

// rowSource plans the VALUES or query that provides the rows of an INSERT, and adds the rules' columns and values.
func (p inserting) rowSource(w *read.Write, ins *read.Insertion) bool {
	if ins.SourceAt == 0 {
		return true // readable refuses the write, which couldn't be read
	}
	if !p.showsKeys(w, ins) {
		return false
	}
	if p.insertion.unmarked && p.replacement != nil {
		return p.refuseReplace(w, advise.ReplaceOfUnknownToken)
	}
	p.addColumns(ins)
	switch {
	case ins.Source == read.NoSource:
		return true // it can't be read
	case ins.Source == read.Defaults:
		if !ins.Rows.Empty() {
			p.defaultValues(ins.SourceAt)
		}
		p.checkBeforeRows(w, ins)
		return true
	case !p.insertion.listed && !p.columnsKnown(ins.SourceAt):
		return false
	}
	asks := !ins.Rows.Empty() && p.passesLedger()
	asksRow := asks && p.Dialect.Guard.LedgerInRow.Is() && !p.insertion.queried
	if asksRow && !p.checksByToken() && !p.checkRows(ins) {
		return false
	}
	p.insertion.tokenChecks = p.checksInToken(w, ins)
	// the rules' own values stand behind the row's last one
	p.insertion.valueChecks = p.checksTwice() && p.checkInValue(w, ins)
	for i := range ins.Arms {
		if !p.rowArm(w, &ins.Arms[i]) {
			return false
		}
	}
	p.checkBeforeRows(w, ins)
	if asks && p.Dialect.Guard.LedgerInRow.Is() && p.insertion.queried { // behind the columns
		return p.checkQuery(w, ins)
	}
	if asks && !p.Dialect.Guard.LedgerInRow.Is() {
		// The rows pass through a WHERE with the ledger's check, which SQLite evaluates for each row.
		p.insertText(p.Offset(ins.SourceAt), "SELECT * FROM (")
		p.ledgerAfter(p.After(ins.Rows.Hi))
	}
	return true
}

// columnsKnown refuses an INSERT without a list of columns if a rule must add a column.
func (p inserting) columnsKnown(at int32) bool {
	which := ""
	p.eachAdded(func(_ int, a added) { which = cmp.Or(which, a.what) })
	if which == "" {
		return true
	}
	return p.refuseTarget(at, advise.NoColumnList, which)
}

// rowArm plans one VALUES or SELECT of an INSERT's query.
func (p inserting) rowArm(w *read.Write, arm *read.RowArm) bool {
	if arm.Select {
		return p.selection(arm)
	}
	// The rows are numbered through all arms of an INSERT or MERGE.
	first := int32(len(p.to().Keys))
	begin, adds := len(p.fragments), p.growRows(len(arm.Rows))
	for n, row := range arm.Rows {
		if row.Empty() && !p.insertion.empty {
			return p.refuseTarget(row.Lo, advise.RowWithoutValues)
		}
		if p.readsKeys() && !p.rowKey(p.Item(row, p.insertion.key)) {
			return false
		}
		if at, number := p.After(row.Hi), first+int32(n); n == 0 {
			p.addValues(at, number, true)
		} else {
			p.repeatValues(p.fragments[begin:begin+adds], at, number)
		}
	}
	keyed := p.target.rules.Key != "" && !p.insertion.unmarked && w.Verb != read.Merge
	if keyed && !arm.Last && (w.Failure.Reason != advise.ExpectedRow || w.Failure.At != arm.After) {
		return p.refuseTarget(arm.After, advise.Unexpected)
	}
	return true
}

// growRows reserves memory for the edits and keys of this number of rows, and returns the number of edits of a row.
func (p inserting) growRows(rows int) (adds int) {
	p.eachAdded(func(int, added) { adds++ })
	p.fragments = slices.Grow(p.fragments, adds*rows)
	if p.readsKeys() {
		p.to().Keys = slices.Grow(p.to().Keys, rows)
	}
	return adds
}

// selection adds the rules' values to the columns of a SELECT that gives all rows the same key.
func (p inserting) selection(arm *read.RowArm) bool {
	row := int32(len(p.to().Keys))
	if p.readsKeys() {
		item, _ := p.Selected(arm.Columns, p.insertion.key)
		if !p.rowKey(item) {
			return false
		}
	}
	adds := false
	p.eachAdded(func(int, added) { adds = true })
	switch {
	case !adds:
		return true
	case arm.Empty:
		return p.refuseTarget(arm.Columns.Hi, advise.ExpectedColumns)
	}
	p.addValues(p.After(arm.Columns.Hi), row, true)
	return true
}

// addValues adds the rules' values after the last value of a row. first reports whether the row is the first of its
// VALUES.
func (p inserting) addValues(at, row int32, first bool) {
	add := func(r int, a added, separator string) {
		p.addValue(at, r, a, separator, row)
		if first && a.value == "" && (p.insertion.tokenChecks || p.checksByToken()) {
			p.fragments[len(p.fragments)-1].Op = render.OpValueChecking
		}
	}
	if p.insertion.empty {
		p.eachSeparated(add)
		return
	}
	p.eachAdded(func(r int, a added) { add(r, a, ", ") })
}

// repeatValues adds the edits of an arm's first row to another row. Only the first row checks the ledger.
func (p inserting) repeatValues(edits []render.Fragment, at, row int32) {
	for _, e := range edits {
		e.At, e.Row = at, row
		if e.Op == render.OpValueChecking {
			e.Op = render.OpValue
		}
		p.fragments = append(p.fragments, e)
	}
}

// passesLedger reports whether the ledger's check must stand in a condition that the rows of an INSERT pass through.
func (p inserting) passesLedger() bool {
	return p.target.rules.Ledger && p.Dialect.LedgerInWhere()
}

func (p inserting) ledgerAfter(at int32) {
	p.insertText(at, ") WHERE ")
	p.insert(at, render.OpAnd, render.SetOf(render.RuleLedger), "")
	if p.insertion.queried {
		p.insert(at, render.OpTail, render.SetOf(render.RuleLedger), "")
	}
}

// defaultValues replaces DEFAULT VALUES, at a token, with a row of only the rules' values. The words DEFAULT VALUES
// stay, in comments. If no rule adds a value, the row gets NULL for its _rowid_, which means the next free row number.
func (p inserting) defaultValues(token int32) {
	first, firstRule := added{}, 0 // preferably a column that is added in every form of the guard
	p.eachAdded(func(r int, a added) {
		if first.column == "" || first.value == "" && a.value != "" {
			first, firstRule = a, r
		}
	})
	ledger, begin, end := p.passesLedger(), p.Offset(token), p.After(token+2)
	if first.column == "" {
		if !ledger {
			return
		}
		first, firstRule = added{column: "_rowid_", value: "NULL"}, render.RuleLedger
	}
	p.insertText(begin, "("+first.column)
	p.eachAdded(func(r int, a added) {
		if r != firstRule {
			p.addColumn(begin, r, a, ", ")
		}
	})
	p.comments = true
	p.insertText(begin, ") /*")
	p.insertText(p.After(token+1), "*/")
	if ledger {
		p.insertText(p.Offset(token+1), "SELECT * FROM (")
	}
	p.insertText(end, " (")
	p.addValue(end, firstRule, first, "", 0)
	p.eachAdded(func(r int, a added) {
		if r != firstRule {
			p.addValue(end, r, a, ", ", 0)
		}
	})
	p.insertText(end, ")")
	if ledger {
		p.ledgerAfter(end)
	}
}

// onConflict plans one ON CONFLICT clause: the rules check the row that the clause updates.
func (p inserting) onConflict(w *read.Write, c *read.Conflict) bool {
	if !c.Update || p.keepsRow(&c.Set) {
		return true
	}
	if at := p.readsItself(w); at >= 0 && p.Dialect.Grammar.OnDuplicate.Is() && len(p.target.rules.Owned) > 0 {
		return p.refuseTarget(at, advise.ReadsItself, p.Dialect.Upsert(nil))
	}
	if !p.versions(w) || !p.assignments(w, &c.Set, true) {
		return false
	}
	if c.Where.At == 0 {
		return true // it can't be read
	}
	if !p.namesNoSerial(c.Where.Range) {
		return false
	}
	rules := p.target.inWhere(p.target.rules)
	return rules == 0 || p.check(w, c.Where, rules)
}

// readsItself returns the token of the written table's name without an alias in the FROM of an INSERT's query, or -1.
// It makes the guard's columns ambiguous. Brackets are skipped, because a query in them has a separate scope for names.
func (p inserting) readsItself(w *read.Write) int32 {
	rows, depth := w.Insertion.Rows, 0
	for i := rows.Lo; p.insertion.queried && i < rows.Hi; i++ {
		switch {
		case p.Tokens[i].Is('('):
			depth++
		case p.Tokens[i].Is(')'):
			depth--
		}
		if name, ok := p.Name(int(i)); !ok || depth != 0 || i == rows.Lo || name != w.Target.Name {
			continue
		}
		before, next := i-1, i+1
		if p.Tokens[before].Is('.') {
			before -= 2
		}
		ends := next == rows.Hi || p.Tokens[next].Is(',') || p.Word(next, afterTable...)
		if ends && p.Word(before, "from", "join", "straight_join") {
			return i
		}
	}
	return -1
}

// afterTable are the keywords that may follow a table in FROM, and so aren't the table's alias.
var afterTable = []string{"where", "group", "having", "order", "limit", "join", "inner", "cross", "left", "right",
	"natural", "straight_join", "on", "using", "union"}
