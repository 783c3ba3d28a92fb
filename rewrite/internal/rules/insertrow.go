package rules

import (
	"slices"

	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/rewrite/internal/advise"
	"github.com/sqlfence/sqlfence/rewrite/internal/read"
	"github.com/sqlfence/sqlfence/rewrite/internal/render"
)

// assignedRow plans MySQL's INSERT ... SET, which has a SET list for its row.
func (p inserting) assignedRow(w *read.Write) bool {
	p.insertion = insertion{listed: true, key: -1}
	set := &w.Set
	if set.Empty() {
		return true // it can't be read
	}
	var seen []string
	for n := range set.Items {
		item := &set.Items[n]
		column, _ := p.Name(int(item.Names.Lo))
		if slices.Contains(seen, column) {
			return p.refuseTarget(item.Lo, advise.NamedTwice)
		}
		seen = append(seen, column)
		if !p.inserts(column, item.Lo, n) {
			return false
		}
	}
	if !p.showsKeys(w, &w.Insertion) || p.readsKeys() && !p.rowKey(p.PlainValue(set.Items[p.insertion.key])) {
		return false
	}
	if p.passesLedger() && !p.checksByToken() {
		rules := p.checksOfRow(0)
		value := func(n int) (v lex.Range) {
			if n < len(set.Items) {
				v = p.PlainValue(set.Items[n])
			}
			return v
		}
		if !p.checkInRow(value, rules, 0) {
			return p.refuseTarget(set.Lo, noValueFor(rules))
		}
	}
	at := p.After(set.Hi)
	p.eachAdded(func(r int, a added) {
		if a.value != "" {
			p.insertText(at, ", "+a.column+" = "+a.value)
			p.addRowColumn(&w.Insertion, r, a)
		}
	})
	p.eachAdded(func(r int, a added) {
		if a.value == "" {
			o := render.OpRowAssign
			if p.checksByToken() {
				o = render.OpRowAssignChecking
			}
			p.insert(at, o, render.SetOf(r), ", "+a.column+" = ")
			p.addRowColumn(&w.Insertion, r, a)
		}
	})
	return true
}

// addRowColumn adds a rule's column to the aliases for the columns of MySQL's row alias, if the statement has such
// aliases.
func (p inserting) addRowColumn(ins *read.Insertion, r int, a added) {
	if !ins.RowColumns.Empty() {
		p.addColumn(p.After(ins.RowColumns.Hi), r, a, ", ")
	}
}

// checksByToken reports whether the guard puts the ledger's check into the value of the fence column in the first row,
// rather than into a value of the application or into the WHERE of a query.
func (p inserting) checksByToken() bool {
	return !p.insertion.queried && p.passesLedger() && p.Dialect.Guard.LedgerInRow.Is() &&
		p.target.rules.FenceColumn != "" && !p.insertion.unmarked
}

// checksOfRow returns the rules that are checked before a value of a row to insert, unless the fence column's value
// holds the check: the ledger in the first row, and the key in each row.
func (p inserting) checksOfRow(row int32) (rules render.RuleSet) {
	if row == 0 {
		rules |= render.SetOf(render.RuleLedger)
	}
	if t := p.target.rules; t.Key != "" && !t.UnfencedInserts && p.Dialect.Guard.ReadsNewRow.Is() {
		rules |= render.SetOf(render.RuleKey)
	}
	return rules
}

// noValueFor returns the refusal of an INSERT without a value that could contain the check of these rules.
func noValueFor(rules render.RuleSet) advise.Code {
	if rules.Has(render.RuleKey) {
		return advise.NoValueForKey
	}
	return advise.NoValueForLedger
}

// checkRows puts the ledger's check into the first row of an INSERT, which is evaluated before any row is inserted, and
// the comparison of the key into each row.
func (p inserting) checkRows(ins *read.Insertion) bool {
	row := int32(0)
	for i := range ins.Arms {
		for _, values := range ins.Arms[i].Rows {
			value := func(n int) lex.Range { return p.Item(values, n) }
			if rules := p.checksOfRow(row); rules != 0 && !p.checkInRow(value, rules, row) {
				return p.refuseTarget(ins.SourceAt, noValueFor(rules))
			}
			row++
		}
	}
	return true
}

// checkQuery adds the ledger's check to the condition of each SELECT of an INSERT's query.
func (p inserting) checkQuery(w *read.Write, ins *read.Insertion) bool {
	for i := range ins.Arms {
		arm := ins.Arms[i]
		if table, at := p.Find(lex.Range{Lo: ins.SourceAt, Hi: arm.Columns.Lo}, p.own); table >= 0 {
			return p.refuseTarget(at, advise.ShadowsLedgerInQuery, render.LedgerTable)
		}
		c, ok := p.SelectCondition(arm, ins.Rows.Hi)
		if !ok {
			return p.refuseTarget(ins.SourceAt, advise.QueryNotPlain)
		}
		switch {
		case !c.Empty():
		case c.Having:
			p.insertText(p.After(c.At), " HAVING ")
			p.insert(p.After(c.At), render.OpAnd, render.SetOf(render.RuleLedger), "")
			continue
		case c.NoFrom:
			p.insertText(p.After(c.At), " FROM DUAL")
		}
		if !p.check(w, c.Condition, render.SetOf(render.RuleLedger)) {
			return false
		}
	}
	return true
}

// checkInRow puts the check of the rules around the first value of a row that is a constant or a placeholder, and
// reports whether it found a place. If the check compares the key, only values after the key's value count. Without a
// constant or placeholder, checkInRow uses the first value that keeps its type inside a CASE.
func (p inserting) checkInRow(value func(n int) lex.Range, rules render.RuleSet, row int32) bool {
	first := 0
	if rules.Has(render.RuleKey) {
		first = p.insertion.key + 1
	}
	for _, isStored := range [...]func(lex.Range) bool{p.isPlain, p.keepsType} {
		for n := first; !value(n).Empty(); n++ {
			if v := value(n); isStored(v) {
				p.insert(p.Offset(v.Lo), render.OpBeforeRow, rules, "")
				p.fragments[len(p.fragments)-1].Row = row
				p.insert(p.After(v.Hi), render.OpAfterRow, rules, "")
				return true
			}
		}
	}
	return false
}
