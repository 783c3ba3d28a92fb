package render

import (
	"github.com/sqlfence/sqlfence/internal/guard"
)

// A sealed writes the SQL of the rule Sealed: the table's triggers require a valid token from each write.
type sealed struct{}

func (sealed) refuses(*writer) bool { return false }

func (sealed) check(*writer) {}

// assigns writes, for a table with claims, an assignment that shows the seal's triggers that the guard has compared the
// row's claim. In other tables the fence column shows the triggers a valid token.
func (sealed) assigns(w *writer) {
	if w.sealed && w.compared() {
		w.writeAssigned(", ", w.rules.Quoted.number)
		w.present()
		w.storedNumber()
	}
}

// present writes the minus sign that makes a stored token valid for the seal of a sealed table.
func (w *writer) present() {
	if w.sealed {
		w.write("-")
	}
}

// presentDelete writes, after the check of a deleted row, SQL that shows the triggers of a sealed table that the check
// has passed.
func (w *writer) presentDelete() {
	if w.sealed && w.deletes {
		w.write(" AND ")
		w.Dialect.Guard.PresentDelete(w.forGuard())
	}
}

// presentedTokens writes the tokens of the table for the seal, with commas between them, the highest first, as the
// arguments of a function that joins texts. For claims it writes that the rows were compared.
func (w *writer) presentedTokens() {
	if w.rules.Claim != "" {
		w.b.Text(guard.ComparedHere)
		return
	}
	if w.hi-w.lo == 1 {
		w.field(w.lo, fieldValue)
		return
	}
	w.write("GREATEST(")
	w.listTokens(fieldValue)
	w.write(")")
	for i := w.lo; i < w.hi; i++ {
		w.write(", ',', ")
		w.field(i, fieldValue)
	}
}
