package rules

import (
	"github.com/sqlfence/sqlfence/rewrite/internal/advise"
	"github.com/sqlfence/sqlfence/rewrite/internal/read"
	"github.com/sqlfence/sqlfence/rewrite/internal/render"
)

// merge plans a MERGE.
func (p inserting) merge(w *read.Write) bool {
	if p.versioned && p.target.rules.Serial != "" {
		return p.refuseTarget(w.At, advise.SerialOfMerge)
	}
	for i := range w.Arms {
		if !p.arm(w, &w.Arms[i]) {
			return false
		}
	}
	return p.readable(w)
}

// arm plans the action of one WHEN of a MERGE.
func (p inserting) arm(w *read.Write, a *read.Arm) bool {
	switch a.Action {
	case read.Delete:
		p.changes()
		p.target.rowWrite = rowWrite{}
		if !p.claims(w, false) {
			return false
		}
		p.armCheck(a.When, p.target.inWhere(p.target.rules))
	case read.Update:
		p.changes()
		if !p.assignments(w, &a.Set, false) {
			return false
		}
		p.armCheck(a.When, p.target.inWhere(p.target.rules))
	case read.Insert:
		p.armCheck(a.When, 0)
		return p.columnList(&a.Insertion) && p.rowSource(w, &a.Insertion)
	}
	return true
}

// armCheck adds the ledger's check, and then the check of the other rules for the row, to the condition of a MERGE's
// arm. The rules' check may only be evaluated for rows that the arm is executed for.
func (p inserting) armCheck(c read.Condition, rules render.RuleSet) {
	asks, at := p.checksTwice(), p.After(c.At)
	if !c.Empty() {
		at = p.Offset(c.Lo)
	}
	if c.Empty() && (asks || rules != 0) {
		p.insertText(at, " AND ")
	}
	if asks {
		p.insert(at, render.OpAnd, render.SetOf(render.RuleLedger), "")
		if !c.Empty() || rules != 0 {
			p.insertText(at, " AND ")
		}
	}
	switch {
	case c.Empty() && rules != 0:
		p.insertCheck(at, rules)
	case !c.Empty() && rules != 0:
		p.insertCase(c, rules)
	case !c.Empty() && asks:
		p.insertText(at, "(")
		p.insertText(p.After(c.Hi), ")")
	}
}
