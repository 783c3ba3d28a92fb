package rules

import (
	"github.com/sqlfence/sqlfence/rewrite/internal/advise"
	"github.com/sqlfence/sqlfence/rewrite/internal/read"
	"github.com/sqlfence/sqlfence/rewrite/internal/render"
)

// A row may have a number that only rises: its serial, or its claim value. NULL counts as 0. A statement may assign the
// number, as applications do that compare the number in their WHERE. The guard surrounds the assigned value where it
// stands, so that the value is evaluated once: the value must be higher than the row's number.

// assignsNumber guards an item of a SET list that assigns the named column, the row version or the claim. If the item
// can't be guarded, the error names the column by the word what, such as "serial", and gives the advice in instead.
func (p writing) assignsNumber(a *read.Assignment, column, what, instead string) bool {
	t := &p.target
	if !p.Assigns(*a, column) {
		return true
	}
	value, ok := p.Value(*a, column)
	switch {
	case t.setsNumber:
		return p.refuseTarget(a.Lo, advise.NumberTwice, what, instead)
	case !ok:
		return p.refuseTarget(a.Lo, advise.NumberInRow, what, instead)
	case value.Lo+1 == value.Hi && p.Word(value.Lo, "default"):
		return p.refuseTarget(value.Lo, advise.NumberByDefault, what, instead)
	}
	t.setsNumber = true
	table := p.to().Table
	p.assigns = append(p.assigns, make([]bool, max(0, table+1-len(p.assigns)))...)
	p.assigns[table] = true
	p.insert(p.Offset(value.Lo), render.OpBeforeAssigned, 0, "")
	p.insert(p.After(value.Hi), render.OpAfterAssigned, 0, "")
	return true
}
