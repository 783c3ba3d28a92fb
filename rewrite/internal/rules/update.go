package rules

import (
	"github.com/sqlfence/sqlfence/rewrite/internal/advise"
	"github.com/sqlfence/sqlfence/rewrite/internal/read"
	"github.com/sqlfence/sqlfence/rewrite/internal/render"
	"strings"
)

// update plans an UPDATE.
//
// UPDATE OR FAIL is allowed. If a constraint fails, SQLite keeps the rows that were changed before; the guard has
// checked these rows. An error that a guard throws undoes the whole statement.
func (p writing) update(w *read.Write) bool {
	if replaces(w) && !p.mayReplace() || w.Or == read.OrOther {
		return p.refuseTarget(w.At+1, advise.UpdateOr, p.TokenText(w.OrAt))
	}
	if !p.versions(w) || !p.countsNoRows(w) || !p.sortsNoQuery(w) {
		return false
	}
	if p.target.versioned && w.Or == read.OrIgnore {
		return p.refuseTarget(w.At+1, advise.SerialIgnores)
	}
	p.orAbort(w)
	p.changes()
	return p.assignments(w, &w.Set, false) && p.matchesInPlan(w) && p.where(w)
}

// countsNoRows refuses an UPDATE that calls MariaDB's row counter. If the UPDATE assigns a column of the index that
// finds its rows, as a guard does with the key or the fence column, MariaDB first collects all rows. The counter then
// stays at 1, and a condition such as rownum() <= 2 limits no rows.
func (p writing) countsNoRows(w *read.Write) bool {
	counter := p.Dialect.Guard.RowCounter
	at := p.calls(w.At, counter)
	return at < 0 || p.refuseTarget(at, advise.CountsRows, strings.ToUpper(counter))
}

// readsNoCount refuses a write that reads the number of rows of the last query, if the guard contains a query.
func (p writing) readsNoCount(w *read.Write) bool {
	if !p.target.rules.Ledger && !p.target.rules.ClaimsOther() {
		return true
	}
	at := p.calls(p.Lo, p.Dialect.Guard.FoundCounter)
	if at < 0 {
		return true
	}
	counter := strings.ToUpper(p.Dialect.Guard.FoundCounter)
	return p.refuseTarget(at, advise.CountsFound, counter, counter)
}

// calls returns the token at which the statement calls a function, at or after from; or -1.
func (p *planner) calls(from int32, function string) int32 {
	for i := from; i < p.Hi && !p.Tokens[i].Is(';') && function != ""; i++ {
		if p.Word(i, function) && p.Tokens[i+1].Is('(') {
			return i
		}
	}
	return -1
}

// matchesInPlan refuses a condition that only the plan of a virtual table can evaluate, if a check would put the
// condition into an expression. There MATCH would be an error, and a comparison with the table's hidden column would
// find nothing.
func (p writing) matchesInPlan(w *read.Write) bool {
	c, t := w.Where, &p.target
	if !p.Dialect.Guard.PlansMatch.Is() || t.inWhere(t.rules) == 0 {
		return true
	}
	for i := c.Lo; i < c.Hi; i++ {
		if p.Tokens[i].Is('(') && p.Word(i+1, "select", "values", "with") {
			i = p.Tokens[i].Mate
			continue
		}
		name, ok := p.Name(int(i))
		ok = ok && name == w.Target.Name && p.TokenText(i)[0] != '\'' // in a condition, a value
		if ok && !p.Tokens[i+1].Is('.') && !p.Tokens[i+1].Is('(') && !p.isArgument(i) || p.Word(i, "match") {
			return p.refuseTarget(i, advise.FullText)
		}
	}
	return true
}

// isArgument reports whether a token is the first argument of a function, as the table's hidden column is in
// bm25(books).
func (p writing) isArgument(i int32) bool {
	_, named := p.Name(int(i) - 2)
	return p.Tokens[i-1].Is('(') && named && !p.Word(i-2, "and", "or", "not", "in", "where", "when", "then", "else")
}

// sortsNoQuery refuses an UPDATE with ORDER BY and a subquery if the guard in the SET list may see a row other than the
// written row.
func (p writing) sortsNoQuery(w *read.Write) bool {
	if !p.sortsAside(w) {
		return true
	}
	for i := w.At; i < p.Hi; i++ {
		if p.Word(i, "select", "values", "table", "with") {
			return p.refuseTarget(i, advise.SortsAside)
		}
	}
	return true
}

// sortsAside reports whether the rows of an UPDATE may be sorted in a copy, where the guard would see another row.
func (p writing) sortsAside(w *read.Write) bool {
	return w.Limit != 0 && p.Word(w.Limit, "order") && len(p.target.rules.Owned) > 0 &&
		p.Dialect.Guard.SortsAside.Is()
}

// delete plans a DELETE.
func (p writing) delete(w *read.Write) bool {
	if !p.versions(w) {
		return false
	}
	p.changes()
	return p.claims(w, false) && p.matchesInPlan(w) && p.where(w)
}

// assignments plans a SET list. It adds the rules' assignments and, if the SET list must check the row, the checks.
// upsert reports whether items can refer to the row that was to be inserted, as excluded.
func (p writing) assignments(w *read.Write, set *read.Assignments, upsert bool) bool {
	t := &p.target
	t.rowWrite = rowWrite{updates: true, versioned: t.versioned, joined: t.joined}
	for i := range set.Items {
		if t.joined && !p.isOfTarget(&set.Items[i]) {
			if p.readsWhatIsAssigned(&set.Items[i]) {
				return false
			}
			continue
		}
		for _, r := range t.rules.Has {
			if !precedence[r].assigned(p, &set.Items[i], upsert) {
				return false
			}
		}
	}
	if set.Empty() {
		return true // readable refuses the write, which couldn't be read
	}
	if !p.claims(w, true) {
		return false
	}
	if t.checked = p.Dialect.Guard.SetsInOrder.Is(); t.checked {
		rules := t.checks()
		if upsert { // the claim would be assigned twice, which takes a query about the session (see Plan.AssignsTwice)
			rules &^= render.SetOf(render.RuleTakeover)
		}
		p.insert(p.Offset(set.Lo), render.OpFirst, rules, "")
		p.plan.AssignsTwice = p.plan.AssignsTwice || upsert && t.rules.Quoted.Steady != "" && t.rules.Claim == ""
		p.plan.ReadsAssigned = p.plan.ReadsAssigned || !upsert && t.returnsKey
	}
	var adds render.RuleSet
	for _, r := range t.rules.Has {
		if precedence[r].inSet(t.rules, t.rowWrite) {
			adds |= render.SetOf(r)
		}
	}
	if adds != 0 {
		p.insert(p.After(set.Hi), render.OpAssign, adds, "")
	}
	return true
}
