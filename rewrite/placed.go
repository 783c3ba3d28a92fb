package rewrite

import (
	"cmp"

	"github.com/sqlfence/sqlfence/rewrite/internal/read"
)

// An INSERT without a list of columns has the token behind the values of each row. Only the
// database knows which column that is for; so it is asked, in the place of the value, and if
// it is another one than the fence column, it raises.

// columnsKnown refuses an INSERT without a list of columns where one has to be added, unless
// the database can be asked whether a value behind the others is for that column. It can't
// where each row has a token of its own, or may have none: then a row could bring its own.
func (p *planner) columnsKnown(ins *read.Insertion) bool {
	which, adds, places := "", 0, p.target.rules.Key == "" && !p.target.rules.UnfencedInserts
	p.eachAdded(func(_ int, a added) {
		which, places = cmp.Or(which, a.what), places && a.places
		adds++
	})
	if adds == 0 {
		return true
	}
	if adds == 1 && places && p.valuesKnown(ins.Arms) {
		p.plan.Placed = int(p.Offset(ins.SourceAt))
		return true
	}
	return p.refuseTarget(ins.SourceAt, "the "+which+" column can't be added without a list of columns; name them: INSERT INTO table (column, ...)")
}

// valuesKnown reports whether it is known how many values the rows have.
func (p *planner) valuesKnown(arms []read.RowArm) bool {
	if p.dialect.insertsWhole() {
		return true
	}
	for _, arm := range arms {
		if arm.Select && !p.counted(arm.Columns) {
			return false
		}
		for _, row := range arm.Rows {
			if !p.counted(row) {
				return false
			}
		}
	}
	return true
}

// counted reports whether a list has a value for each of its items.
func (p *planner) counted(list read.Span) bool {
	_, expands := p.Items(list)
	return !expands
}

// places reports whether the database is to be asked in row n of an arm. Where all rows are
// inserted, it is asked in the first one.
func (p *planner) places(arm *read.RowArm, n int) bool {
	if p.insertion.listed {
		return false
	}
	all := arm.After == p.Hi || p.Word(arm.After, "on", "returning")
	return n == 0 || !all
}

// place adds the rules' value behind a row.
func (p *planner) place(at int32, row read.Span) {
	given, _ := p.Items(row)
	p.eachAdded(func(r int, _ added) {
		p.insert(at, opPlaced, setOf(r), ", ")
		p.edits[len(p.edits)-1].row = given
	})
}

// placedValue writes what a rule adds to a row of an INSERT that names no columns.
func (w *writer) placedValue(e *edit) {
	rule := precedence[e.rules.first()]
	if !rule.gives(w) {
		return
	}
	w.write(e.text, "(SELECT CASE WHEN ")
	before, between, behind := w.dialect.compares(equal)
	w.write(before, w.dialect.countAll(), between, "1", behind, " THEN ")
	rule.value(w, e)
	w.write(" ELSE ")
	w.raise(markerPlace, w.table, w.dialect.countAll())
	w.write(" END FROM ")
	w.dialect.columnBehind(w, int(e.row))
	w.write(")")
}
