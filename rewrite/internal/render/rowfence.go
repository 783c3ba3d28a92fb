package render

import (
	"github.com/sqlfence/sqlfence/internal/guard"
)

// insertedToken writes the token of a row to insert.
func (w *writer) insertedToken(e *Fragment) {
	switch token := w.rowsToken(e); {
	case w.Replacement != nil:
		replacing{w}.replacedToken(e)
	case token == guard.NoToken:
		w.write("0")
	case w.rules.Key != "" && w.Dialect.Guard.ReadsNewRow.Is():
		w.byKeyOf(token, token+1, w.storedToken, func() { w.throw(guard.OutOfScope, token, w.shownKey()) })
	default:
		w.storedToken(token)
	}
}

type rowFence struct{}

func (rowFence) refuses(w *writer) bool { return w.compared() }

func (rowFence) check(w *writer) {
	w.byKey(func(token int) {
		w.write("CASE WHEN ")
		w.isFresh(token)
		w.write(" THEN ")
		w.bool(true)
		w.write(" ELSE ")
		w.throwStale(token)
		w.write(" IS NOT NULL")
		w.write(" END")
	}, w.outOfScope)
	w.presentDelete()
}

// assigns writes the assignment of the token.
func (rowFence) assigns(w *writer) {
	if w.lo == w.hi {
		return
	}
	before, between, behind := w.Dialect.Guard.Assigns.Parts()
	w.write(", ", before)
	w.assignedColumn(w.rules.Quoted.Fence)
	w.write(between)
	if w.Dialect.Guard.SetsInOrder.Is() {
		w.present()
		w.higherToken()
	} else {
		w.byKey(func(token int) {
			w.write("CASE WHEN ")
			w.isFresh(token)
			w.write(" THEN ")
			w.storedToken(token)
			w.write(" ELSE ")
			w.throwStale(token)
			w.write(" END")
		}, func() { w.throw(guard.OutOfScope, w.lo, w.shownKey()) })
	}
	w.write(behind)
}

// higherToken writes the higher one of the row's token and the statement's.
func (w *writer) higherToken() {
	before, between, behind := w.Dialect.Guard.Greatest.Parts()
	w.byKey(func(token int) {
		w.write(before)
		w.rowToken()
		w.write(between)
		w.field(token, fieldValue)
		w.write(behind)
	}, func() {
		w.throw(guard.OutOfScope, w.lo, w.shownKey()) // the statement has assigned another key
	})
}

// rowToken writes the row's token as a number that is never NULL. A negative token counts by its absolute value: a
// write presents it to a seal, and without a seal it stays negative.
func (w *writer) rowToken() {
	before, behind := w.Dialect.Guard.Size.Ends()
	w.write(before, w.target.Qualifier, ".", w.rules.Quoted.Fence, behind)
}

// throwStale writes an expression that throws the error for a row with a newer token than the statement's.
func (w *writer) throwStale(token int) {
	w.throw(guard.Stale, token, w.target.Qualifier, ".", w.rules.Quoted.Fence)
}

// isFresh writes the comparison of the row's token with the statement's.
func (w *writer) isFresh(token int) {
	c := guard.LessOrEqual
	if w.rules.SingleUse {
		c = guard.Less
	}
	before, behind := w.Dialect.Guard.Size.Ends()
	w.compare(c, token, before, w.target.Qualifier, ".", w.rules.Quoted.Fence, behind)
}

// storedToken writes a token in the form that is assigned to the fence column.
func (w *writer) storedToken(token int) {
	w.present()
	w.field(token, fieldValue)
}

// compare writes the comparison of a stored number with the value of a token. stored is the number's SQL, in parts.
func (w *writer) compare(c guard.Comparison, token int, stored ...string) {
	before, between, behind := w.Dialect.Guard.Compares(c).Parts()
	w.write(before)
	w.write(stored...)
	w.write(between)
	w.field(token, fieldValue)
	w.write(behind)
}
