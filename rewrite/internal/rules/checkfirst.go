package rules

import (
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/rewrite/internal/read"
	"github.com/sqlfence/sqlfence/rewrite/internal/render"
)

// If the ledger is checked only after the statement has locked its rows, a stale holder first gets the error of a
// constraint that its row breaks. So the ledger is also checked before the first row, by a query without a lock. The
// query throws an error if the snapshot has a newer token, and accepts any other token. The early check only improves
// the error message. If there is no place for the early check, Plan.ChecksLate is set.

// checksTwice reports whether the ledger is checked before the target's first row, and again at the end.
func (p writing) checksTwice() bool {
	return p.target.rules.Ledger && !p.Dialect.LedgerInWhere()
}

// checksInToken reports whether the value of the fence column in the first of several inserted rows contains the
// ledger's check.
func (p inserting) checksInToken(w *read.Write, ins *read.Insertion) bool {
	return p.checksTwice() && w.Verb != read.Merge && p.target.rules.FenceColumn != "" && !p.insertion.unmarked &&
		ins.Source == read.Values && !p.isBareRow(ins)
}

// checkBeforeRows puts the ledger's check before the rows to insert.
//
// A bare row (see isBareRow) becomes a query with a condition, because a CASE would turn a value without a type into a
// text. VALUES and the brackets stay, in comments. A query gets an OFFSET, which the database evaluates first; the
// OFFSET is NULL, which skips no rows. A query that names the ledger gets none: its CTE would hide the ledger.
func (p inserting) checkBeforeRows(w *read.Write, ins *read.Insertion) {
	if !p.checksTwice() || w.Verb == read.Merge { // armCheck adds the check to MERGE
		return
	}
	at := p.After(ins.Rows.Hi)
	switch {
	case ins.Rows.Empty():
	case ins.Source == read.Query:
		if table, _ := p.Find(ins.Rows, p.own); table < 0 && !p.limits(ins.Rows) {
			p.insert(at, render.OpTail, render.SetOf(render.RuleLedger), "")
			return
		}
	case p.isBareRow(ins):
		row := ins.Arms[0].Rows[0]
		p.comments = true
		p.insertText(p.Offset(ins.SourceAt), "/*")
		p.insertText(p.After(ins.SourceAt+1), "*/ SELECT")
		p.insertText(p.Offset(row.Lo-1), "/*")
		p.insertText(p.After(row.Lo), "*/")
		p.insertText(p.Offset(row.Hi), "/*")
		p.insertText(at, "*/ WHERE ")
		p.insert(at, render.OpAnd, render.SetOf(render.RuleLedger), "")
		return
	case p.insertion.tokenChecks, p.insertion.valueChecks:
		return
	}
	p.plan.ChecksLate, p.to().Late = true, true
}

// checkInValue puts the ledger's check before the first value of the first row that keeps its type inside a CASE. It
// acts only on VALUES that isn't a bare row (see isBareRow), and reports whether such a value exists.
func (p inserting) checkInValue(w *read.Write, ins *read.Insertion) bool {
	values := w.Verb != read.Merge && ins.Source == read.Values && !ins.Rows.Empty()
	if !values || p.isBareRow(ins) || p.insertion.tokenChecks || len(ins.Arms) != 1 || len(ins.Arms[0].Rows) == 0 {
		return false
	}
	row := ins.Arms[0].Rows[0]
	for n := 0; !p.Item(row, n).Empty(); n++ {
		if v := p.Item(row, n); p.hasType(v) {
			p.insert(p.Offset(v.Lo), render.OpBeforeRow, render.SetOf(render.RuleLedger), "")
			p.insert(p.After(v.Hi), render.OpAfterRow, render.SetOf(render.RuleLedger), "")
			return true
		}
	}
	return false
}

// limits reports whether the query of an INSERT may end with a clause that no OFFSET can follow. A query in brackets
// and the clauses after the brackets form one query, unless UNION, INTERSECT or EXCEPT combines the query in brackets
// with another query.
func (p inserting) limits(rows lex.Range) bool { return p.endsLimited(rows, "offset", "fetch", "for") }

// endsLimited reports whether the query of an INSERT may end with one of the clauses. If a query in brackets is the
// whole query, a LIMIT, OFFSET, FETCH or FOR inside the brackets counts like these clauses.
func (p inserting) endsLimited(rows lex.Range, clauses ...string) bool {
	bare, limited, combined := false, false, false
	for i := rows.Lo; i < rows.Hi; i++ {
		switch {
		case p.Word(i, clauses...):
			return true
		case p.Word(i, "select", "table"):
			bare = true
		case p.Word(i, "union", "intersect", "except"):
			combined = true
		case p.Tokens[i].Is('('):
			in := lex.Range{Lo: i + 1, Hi: p.Tokens[i].Mate}
			limited = limited || !bare && !p.isItem(i) && p.endsLimited(in, "limit", "offset", "fetch", "for")
			i = in.Hi
		}
	}
	return limited && !combined
}

// isItem reports whether the bracket contains the query of a WITH item.
func (p inserting) isItem(bracket int32) bool {
	return p.Word(bracket-1, "as") || p.Word(bracket-1, "materialized") && p.Word(bracket-2, "as", "not")
}

// isBareRow reports whether there is a single row, of placeholders and constants only: a query
// returns these unchanged, as VALUES does.
func (p inserting) isBareRow(ins *read.Insertion) bool {
	if ins.Source != read.Values || len(ins.Arms) != 1 || len(ins.Arms[0].Rows) != 1 {
		return false
	}
	row := ins.Arms[0].Rows[0]
	if row.Empty() || ins.SourceAt+1 != row.Lo-1 || row.Hi+1 != ins.Rows.Hi {
		return false
	}
	for n := 0; ; n++ {
		switch v := p.Item(row, n); {
		case v.Empty():
			return n > 0
		case !p.isBare(v):
			return false
		}
	}
}

// checkInKeys adds the ledger's check to the parts column = value of a condition. SQLite looks such a value up in an
// index, and evaluates nothing else of the condition if the index has no row for the value. A part with a constant
// stays as it is, because SQLite chooses a partial index by the constant; a copy with the check precedes the condition.
func (p writing) checkInKeys(c read.Condition, at int32) {
	const most = 4 // each is a subquery more for SQLite to compile
	ask := render.SetOf(render.RuleLedger)
	for n, part := range p.conjuncts(c.Range) {
		if n == most {
			return
		}
		value, ok := p.comparedValue(part)
		switch {
		case !ok:
		case p.Tokens[value.Lo].Kind == lex.Param:
			p.insert(p.Offset(value.Lo), render.OpBeforeRow, ask, "")
			p.insert(p.After(value.Hi), render.OpAfterRow, ask, "")
		default:
			p.insertText(at, p.Source(lex.Range{Lo: part.Lo, Hi: value.Lo})+" ")
			p.insert(at, render.OpBeforeRow, ask, "")
			p.insertText(at, p.Source(value))
			p.insert(at, render.OpAfterRow, ask, "")
			p.insertText(at, " AND ")
		}
	}
}
