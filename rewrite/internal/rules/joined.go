package rules

import (
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/rewrite/internal/advise"
	"github.com/sqlfence/sqlfence/rewrite/internal/read"
	"github.com/sqlfence/sqlfence/rewrite/internal/render"
)

// joined plans a write to the target in a statement that joins tables. The statement may also write to tables without a
// registration. It is refused if it writes to a second registered table.
func (p writing) joined(w *read.Write) bool {
	p.target.joined = true
	registered := 0
	for i := range p.Writes {
		t := &p.Writes[i]
		if t.At == w.At && (p.index.guards(t.Target.Schema, t.Target.Name) || p.own(t.Target.Name) >= 0) {
			registered++
		}
	}
	switch {
	case registered > 1:
		return p.refuseTarget(w.At, advise.WritesManyTables)
	case w.Join.SameName:
		return p.refuseTarget(w.Target.At, advise.SameName)
	case w.Limit > 0:
		return p.refuseTarget(w.Limit, advise.JoinedLimit)
	case p.versioned && p.target.rules.Serial != "":
		return p.refuseTarget(w.At, advise.JoinedSerial)
	}
	return true
}

// isOfTarget reports whether an item of the SET list of joined tables assigns a column of the target. Each item names
// its table, or can't be read.
func (p writing) isOfTarget(a *read.Assignment) bool {
	if a.Names.Lo < a.Lo+2 {
		return true
	}
	of, ok := p.Name(int(a.Names.Lo) - 2)
	return !ok || p.Dialect.Quote(of) == p.target.qualifier
}

// readsWhatIsAssigned refuses an item of a SET list that assigns a column of another table from a column that the guard
// assigns, because the query plan would decide whether the item reads the old or the new value.
func (p writing) readsWhatIsAssigned(a *read.Assignment) bool {
	t := p.target.rules
	for i := a.Names.Hi; i < a.Hi; i++ {
		if k := p.Tokens[i].Kind; k != lex.Word && k != lex.Quoted {
			continue
		}
		column, ok := p.Name(int(i))
		if ok && (column == t.FenceColumn || column == t.Serial || column == t.Claim && (p.takesOver || t.Sealed)) {
			p.refuseTarget(i, advise.ReadsWhatIsAssigned)
			return true
		}
	}
	return false
}

// checkJoined adds the rules' check to a DELETE of joined tables, for the target's rows that meet the WHERE and the
// conditions of the joins. These conditions stand in a subquery before the check. Without the subquery the servers
// would replace a column with another column that the conditions make equal, and check a row before the row is joined.
func (p writing) checkJoined(w *read.Write, rules render.RuleSet) bool {
	c, at := w.Where, p.After(w.Where.Hi)
	switch {
	case w.Join.Outer:
		return p.refuseTarget(w.At, advise.OuterJoin)
	case w.Join.Columns:
		return p.refuseTarget(w.At, advise.JoinByColumns)
	}
	if c.Empty() {
		at = p.After(c.At)
		p.insertText(at, existsUncached+p.Dialect.Bool(true))
	} else {
		p.insertText(p.Offset(c.Lo), existsUncached)
	}
	p.insertText(at, ")")
	for _, on := range w.Join.On {
		p.repeatParts(on, at)
	}
	p.insertText(at, ") THEN ")
	p.insertCheck(at, rules)
	p.insertText(at, " ELSE "+p.Dialect.Bool(false)+" END")
	if !c.Empty() {
		p.repeatParts(c.Range, at)
	}
	return true
}
