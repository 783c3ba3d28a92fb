package rewrite

import (
	"strings"

	"github.com/sqlfence/sqlfence/internal/sql/read"
)

// update plans an UPDATE.
//
// OR FAIL keeps the rows changed before one that breaks a constraint, and each has
// its token; an error that a guard raises undoes the statement.
func (p *planner) update(w *read.Write) bool {
	if replaces(w) && !p.mayReplace() || w.Or == read.OrOther {
		return p.refuseTarget(w.At+1, "OR "+p.TokenText(w.OrAt)+" may delete other rows or keep part of a failed "+
			"statement; write UPDATE without it")
	}
	if !p.versions(w) || !p.countsNoRows(w) || !p.sortsNoQuery(w) {
		return false
	}
	if p.target.versioned && w.Or == read.OrIgnore {
		return p.refuseTarget(w.At+1, "OR IGNORE skips a row that breaks a constraint, which WithSerial would "+
			"report as gone; write UPDATE without it")
	}
	p.orAbort(w)
	p.changes()
	return p.assignments(w, &w.Set, false) && p.where(w)
}

// countsNoRows refuses an UPDATE that counts its rows. Where it assigns a column of the index that
// it finds rows by, as a guard does with the key or the mark, MariaDB looks for all of them first.
// Its count then stays at 1, and it updates more rows.
func (p *planner) countsNoRows(w *read.Write) bool {
	counter := p.dialect.guard.RowCounter
	if counter == "" {
		return true
	}
	for i := w.At; i < p.Hi && !p.Tokens[i].Is(';'); i++ {
		if p.Word(i, counter) && p.Tokens[i+1].Is('(') {
			return p.refuseTarget(i, "under a guard "+strings.ToUpper(counter)+
				"() may count otherwise, so that more rows "+
				"are updated; write LIMIT, or select the rows by their keys")
		}
	}
	return true
}

// sortsNoQuery refuses an UPDATE with ORDER BY and a subquery where the guard in its SET list may see
// another row than the one that is written.
func (p *planner) sortsNoQuery(w *read.Write) bool {
	if !p.sortsAside(w) {
		return true
	}
	for i := w.At; i < p.Hi; i++ {
		if p.Word(i, "select", "values", "table", "with") {
			return p.refuseTarget(i, "an UPDATE with ORDER BY and a subquery may be executed on a copy of its "+
				"rows, in which a guard sees another one; select the keys by SELECT ... FOR UPDATE, and update "+
				"the rows with these keys in the same transaction")
		}
	}
	return true
}

// sortsAside reports whether the rows of an UPDATE may be sorted in a copy, where the guard would see another one.
func (p *planner) sortsAside(w *read.Write) bool {
	return w.Limit != 0 && p.Word(w.Limit, "order") && len(p.target.rules.columns) > 0 &&
		p.dialect.guard.SortsAside.Is()
}

// delete plans a DELETE.
func (p *planner) delete(w *read.Write) bool {
	if !p.versions(w) {
		return false
	}
	p.changes()
	return p.claims(w, false) && p.where(w)
}

// assignments plans a SET list. It adds the rules' assignments and, where these have to be there,
// the checks of the row. upsert says whether there is an excluded row.
func (p *planner) assignments(w *read.Write, set *read.Assignments, upsert bool) bool {
	t := &p.target
	t.rowWrite = rowWrite{updates: true, versioned: t.versioned, joined: t.joined}
	for i := range set.Items {
		if t.joined && !p.isOfTarget(&set.Items[i]) {
			if p.readsWhatIsAssigned(&set.Items[i]) {
				return false
			}
			continue
		}
		for _, r := range t.rules.has {
			if !precedence[r].assigned(p, &set.Items[i], upsert) {
				return false
			}
		}
	}
	if set.Empty() {
		return true // it can't be read
	}
	if !p.claims(w, true) {
		return false
	}
	if t.checked = p.dialect.guard.SetsInOrder.Is(); t.checked {
		rules := t.checks()
		if upsert { // the claim would be assigned twice, which takes a query about the session (see Plan.AssignsTwice)
			rules &^= setOf(ruleTakeover)
		}
		p.insert(p.Offset(set.Lo), opFirst, rules, "")
		p.plan.AssignsTwice = p.plan.AssignsTwice || upsert && t.rules.steady != "" && t.rules.Claim == ""
		p.plan.ReadsAssigned = p.plan.ReadsAssigned || !upsert && t.returnsKey
	}
	var adds ruleSet
	for _, r := range t.rules.has {
		if precedence[r].inSet(t.rules, t.rowWrite) {
			adds |= setOf(r)
		}
	}
	if adds != 0 {
		p.insert(p.After(set.Hi), opAssign, adds, "")
	}
	return true
}
