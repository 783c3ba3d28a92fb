package rewrite

import (
	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/rewrite/internal/read"
)

// marking makes a DELETE from a table that may be sealed an UPDATE which marks the rows, where
// the database deletes by that:
//
//	/*DELETE*/ UPDATE /*FROM*/ books SET fence_token = ... WHERE ...
//
// All else of the statement means the same in both, also the guard's condition.
func (p *planner) marking(w *read.Write) {
	if !p.target.rules.Sealed || !p.dialect.deletesByMark() {
		return
	}
	verb := w.At
	p.insert(p.Offset(verb), opMarking, 0, "/*")
	p.insert(p.After(verb+1), opMarking, 0, "*/ UPDATE")
	p.insert(p.Offset(verb+1), opMarking, 0, "/*")
	p.insert(p.After(verb+2), opMarking, 0, "*/")
	p.insert(p.After(w.From), opMark, 0, "")
}

// marksDeleted reports whether the DELETE that is being written is such an UPDATE.
func (w *writer) marksDeleted() bool { return w.sealed && w.lo < w.hi }

// markDeleted writes the assignment of the mark by which a row is deleted: the negative of its
// token, less a number above all tokens.
func (w *writer) markDeleted() {
	w.write(" SET ")
	w.assignedColumn(w.rules.fence)
	w.write(" = CASE WHEN ")
	w.dialect.proveDelete(w)
	w.write(" THEN -" + sqltext.SQLiteDeleted + " - ")
	if w.observe {
		w.higherToken()
	} else {
		w.byKey(func(token int) { w.field(token, fieldValue) }, func() { w.raise(markerScope, w.lo, "COALESCE(", w.rowsKey(), ", '')") })
	}
	w.write(" END")
}
