package render

import (
	"github.com/sqlfence/sqlfence/internal/guard"
)

// stored writes a RETURNING clause that throws an error for a row with a key other than the token's.
func (w *writer) stored() {
	if !w.compared() {
		return
	}
	w.write(" RETURNING ")
	w.byKey(func(int) { w.write("1") }, func() { w.throw(guard.OutOfScope, w.lo, w.shownKey()) })
}

type key struct{}

func (key) assigns(w *writer) {
	if !w.compared() {
		return
	}
	w.writeAssigned(", ", w.rules.Quoted.key)
	w.write("CASE WHEN ")
	texts[RuleKey].check(w)
	w.write(" THEN ", w.target.Qualifier, ".", w.rules.Quoted.key, " END")
}

func (key) refuses(w *writer) bool {
	return w.rules.FenceColumn == "" && w.rules.Claim == "" && w.compared()
}

func (key) check(w *writer) { w.byKey(func(int) { w.bool(true) }, w.outOfScope) }

// byKey writes one(token) for the token that covers the row, and otherwise() for a row without a token. Without Key the
// single token covers all rows.
func (w *writer) byKey(one func(token int), otherwise func()) {
	if w.rules.Key == "" {
		one(w.lo)
		return
	}
	w.byKeyOf(w.lo, w.hi, one, otherwise)
}

// byKeyOf is byKey for some of the tokens of a table with Key.
func (w *writer) byKeyOf(lo, hi int, one func(token int), otherwise func()) {
	w.write("CASE")
	for i := lo; i < hi; i++ {
		w.write(" WHEN ")
		w.same(w.rowsKey(), i, fieldKey)
		w.write(" THEN ")
		one(i)
	}
	w.write(" ELSE ")
	otherwise()
	w.write(" END")
}

// outOfScope writes an expression that throws the error for a row that no token covers.
func (w *writer) outOfScope() {
	w.throwCondition(guard.OutOfScope, w.lo, w.shownKey())
}

// shownKey returns the row's key in the form that errors show, which is never NULL.
func (w *writer) shownKey() string {
	return "COALESCE(" + w.rowsKey() + ", " + w.Dialect.Text("") + ")"
}

// rowsKey returns the row's key as text.
func (w *writer) rowsKey() string {
	return w.Dialect.keyText(w.target.Qualifier + "." + w.rules.Quoted.key)
}

// keyText makes a column a text that is compared byte by byte.
func (d *Dialect) keyText(column string) string {
	around := &d.Capabilities().KeyText
	return around[0] + column + around[1]
}
