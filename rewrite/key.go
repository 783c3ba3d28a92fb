package rewrite

import "github.com/sqlfence/sqlfence/rewrite/internal/read"

// A key is the column that selects each row's token. A row of which none of the
// statement's tokens is for is out of their scope.
type key struct{}

func (key) columns(t *Table) []*string {
	if t.Key == "" {
		return nil
	}
	return []*string{&t.Key}
}

func (key) withoutTokens() bool { return false }

func (key) adds(*Table) added { return added{} }

func (key) gives(*writer) bool { return false }

func (key) value(*writer, *edit) {}

// assigned notes where the value of an assignment of the key stands. Another value than
// the row's own key would move the row out of its token's scope, so only a value is read
// that can be compared with it.
func (key) assigned(p *planner, a *read.Assignment, upsert bool) bool {
	for i := a.Names.Lo; i < a.Names.Hi; i++ {
		column, ok := p.Name(int(i))
		switch {
		case !ok || column != p.target.rules.Key && !p.dialect.isRowNumber(column):
		case column != p.target.rules.Key || !p.newKey(a, upsert):
			return p.refuseTarget(a.Lo, "it assigns the key column a value that may be another key, which would move the row out of its token's scope; "+
				"leave the column out, or assign the row's own key as an argument or as a plain constant")
		}
	}
	return true
}

// newKey notes the key that an item assigns, if it can be seen: a constant, or the key of
// the row that was to be inserted, which is one of [Target.Keys]. Where the table is called
// excluded itself that may be another's.
func (p *planner) newKey(a *read.Assignment, upsert bool) bool {
	value, to := p.PlainValue(*a), p.to()
	if c, ok := p.Constant(value); ok {
		to.AssignsKey, to.NewKeys = true, append(to.NewKeys, KeyValue(c))
		return true
	}
	column, ok := p.Excluded(value)
	if !ok || !upsert || column != p.target.rules.Key || p.target.qualifier == p.dialect.Quote("excluded") {
		return false
	}
	to.AssignsKey = true
	return true
}

func (key) inserted(p *planner, column string, token int32, n int) bool {
	switch {
	case column == p.target.rules.Key:
		p.insertion.key = n
	case p.dialect.isRowNumber(column):
		return p.refuseTarget(token, "the rowid may be the row's key; name the key column instead")
	}
	return true
}

// rowKey notes where the key's value stands in a row.
func (p *planner) rowKey(row read.Span) bool {
	return p.keyOf(p.Item(row, p.insertion.key))
}

// keyOf notes the key that is the value of a new row.
func (p *planner) keyOf(value read.Span) bool {
	c, ok := p.Constant(value)
	if !ok {
		return p.refuseTarget(value.Lo, "the row's key is unknown before the statement runs; pass it as an argument, or write a constant")
	}
	to := p.to()
	to.Keys = append(to.Keys, KeyValue(c))
	return true
}

func (key) assigns(*writer) {}

// inWhere: with a fence column, who compares the row's token sees to its key.
func (key) inWhere(t *Table, _ rowWrite) bool {
	return t.Key != "" && t.FenceColumn == ""
}

func (key) refuses(w *writer) bool {
	return w.rules.Key != "" && w.rules.FenceColumn == "" && w.compared()
}

func (key) check(w *writer) { w.byKey(func(int) { w.bool(true) }, w.outOfScope) }

// byKey writes one(token) for the token that covers the row, and otherwise() for a row
// that none covers. Without Key the one token covers all.
func (w *writer) byKey(one func(token int), otherwise func()) {
	if w.rules.Key == "" {
		one(w.lo)
		return
	}
	w.write("CASE ", w.rowsKey())
	for i := w.lo; i < w.hi; i++ {
		w.write(" WHEN ")
		w.field(i, fieldKey)
		w.write(" THEN ")
		one(i)
	}
	w.write(" ELSE ")
	otherwise()
	w.write(" END")
}

// outOfScope raises for a row that none of the tokens is for.
func (w *writer) outOfScope() {
	w.raiseCondition(markerScope, w.lo, "COALESCE(", w.rowsKey(), ", '')")
}

// rowsKey returns the row's key as text.
func (w *writer) rowsKey() string {
	before, behind := w.dialect.keyText()
	return before + w.target.qualifier + "." + w.rules.key + behind
}
