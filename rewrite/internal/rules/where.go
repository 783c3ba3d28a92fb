package rules

import (
	"slices"

	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/rewrite/internal/advise"
	"github.com/sqlfence/sqlfence/rewrite/internal/read"
	"github.com/sqlfence/sqlfence/rewrite/internal/render"
)

// where plans the condition of an UPDATE or DELETE, in which some rules check the rows that the condition selects.
func (p writing) where(w *read.Write) bool {
	t := &p.target
	rules := t.inWhere(t.rules)
	if c := w.Where; c.At > 0 {
		if (rules != 0 || t.rules.ClaimsOther()) && p.isCursor(c) {
			return p.refuseTarget(c.Lo, advise.RowOfCursor)
		}
		if !p.namesNoSerial(lex.Range{Lo: w.From, Hi: c.End()}) {
			return false
		}
		p.returns(w)
		if (rules != 0 && !p.Dialect.Guard.ChecksBeyondLimit.Is() || t.versioned) && w.Limit > 0 {
			return p.refuseTarget(w.Limit, advise.LimitedRows)
		}
		p.plan.ChecksLimited = p.plan.ChecksLimited || rules != 0 && w.Limit > 0
	}
	if !p.readable(w) {
		return false
	}
	if t.rules.Ledger && (p.Dialect.LedgerInWhere() || p.checksInWhere(w.Where)) {
		rules |= render.SetOf(render.RuleLedger)
	}
	return rules == 0 || p.check(w, w.Where, rules)
}

// returns records that the statement returns rows.
func (p writing) returns(w *read.Write) {
	if w.Returning > 0 && w.Depth == 0 {
		p.plan.Returns = true
	}
}

// check adds the check of some rules to the condition of a write.
//
// The ledger's check doesn't depend on a row. It precedes the condition, so that the ledger is checked first, even if
// the condition excludes all rows that are read.
//
// The check of the other rules throws an error, so it may only be evaluated for rows that meet the statement's own
// condition. AND gives no order of evaluation; CASE does. But the database can't use an index for a condition inside a
// CASE. So the parts of the condition that may be evaluated twice are repeated after the CASE.
func (p writing) check(w *read.Write, c read.Condition, rules render.RuleSet) bool {
	if !c.Empty() && p.Dialect.Guard.ReadsWith.Is() && p.Word(c.Lo, "with") {
		return p.refuseTarget(c.Lo, advise.ColumnNamedWith)
	}
	at := p.Offset(c.Lo)
	if c.Empty() {
		at = p.After(c.At)
		p.insertText(at, " WHERE ")
	}
	onRows := rules &^ render.SetOf(render.RuleLedger)
	if rules != onRows {
		p.insert(at, render.OpAnd, render.SetOf(render.RuleLedger), "")
		if onRows != 0 || !c.Empty() {
			p.insertText(at, " AND ")
		}
		if p.Dialect.Guard.SeeksFirst.Is() && onRows == 0 && !c.Empty() {
			p.checkInKeys(c, at)
		}
	}
	switch {
	case onRows == 0 && c.Empty():
	case onRows == 0:
		p.insertText(at, "(")
		p.insertText(p.After(c.Hi), ")")
	case p.target.joined:
		return p.checkJoined(w, onRows)
	case c.Empty():
		p.insertCheck(at, onRows)
	default:
		p.insertCase(c, onRows)
		p.repeatParts(c.Range, p.After(c.Hi))
	}
	return true
}

// repeatParts repeats, at an offset, the parts of a condition that may be evaluated twice.
func (p writing) repeatParts(condition lex.Range, at int32) {
	for _, part := range p.Repeatable(condition) {
		p.repeat(part, at)
	}
}

// existsUncached begins a CASE with a condition in a subquery. Without BENCHMARK, which has side effects as far as the
// server knows, MariaDB would reuse the subquery's result for a row with other texts that a collation considers equal.
const existsUncached = "CASE WHEN EXISTS (SELECT 1 FROM DUAL WHERE BENCHMARK(0, 1) = 0 AND ("

// insertCase puts a condition that isn't empty into a CASE before a check.
func (p writing) insertCase(c read.Condition, rules render.RuleSet) {
	at := p.After(c.Hi)
	if p.Dialect.Guard.FindsDatesByNull.Is() && p.testsForNull(c.Range) {
		p.insertText(p.Offset(c.Lo), existsUncached)
		p.insertText(at, ")")
	} else {
		p.insertText(p.Offset(c.Lo), "CASE WHEN (")
	}
	p.insertText(at, ") THEN ")
	p.insertCheck(at, rules)
	p.insertText(at, p.Dialect.ElseFalse)
}

// testsForNull reports whether a condition tests for NULL, and can stand in a separate query (see FindsDatesByNull). A
// MATCH can only stand in the query of its columns.
func (p writing) testsForNull(condition lex.Range) (asks bool) {
	for i := condition.Lo; i < condition.Hi; i++ {
		switch {
		case p.Word(i, "match"):
			return false
		case p.Word(i, "isnull"), p.Word(i, "is") && p.Word(i+1, "null"):
			asks = true
		}
	}
	return asks
}

// insertCheck inserts the check of some rules for a row that is updated or deleted.
func (p writing) insertCheck(at int32, rules render.RuleSet) {
	if p.target.updates {
		p.insert(at, render.OpCheck, rules, "")
	} else {
		p.insert(at, render.OpCheckDeleted, rules, "")
	}
}

// isCursor reports whether a condition selects the row of a cursor. CURRENT OF can't be combined with other conditions.
func (p writing) isCursor(c read.Condition) bool {
	return c.At > 0 && !c.Empty() && p.Word(c.Lo, "current") && p.Word(c.Lo+1, "of")
}

// checksInWhere reports whether the ledger is checked in a condition, and again at the end of the statement.
func (p writing) checksInWhere(c read.Condition) bool {
	late := p.isCursor(c)
	p.plan.ChecksLate = p.plan.ChecksLate || late && p.checksTwice()
	return p.checksTwice() && !late
}

// repeat adds a copy of a part of a condition at an offset after the condition.
func (p *planner) repeat(part lex.Range, at int32) {
	begin, r := p.Offset(part.Lo), &p.repeats
	known := len(r.Bare)
	r.Bare = slices.Grow(r.Bare, min(p.NumberInputs().Bare, int(part.Hi-part.Lo)))
	p.EachBare(part, func(end int32, number int) {
		r.Bare = append(r.Bare, render.Bare{End: end - begin, Number: int32(number)})
	})
	index := int32(render.NoBare)
	if len(r.Bare) > known {
		index = int32(len(r.Ends))
		r.Ends = append(r.Ends, int32(len(r.Bare)))
	}
	p.fragments = append(p.fragments, render.Fragment{At: at, Op: render.OpRepeat, Row: index, Text: p.Source(part)})
}
