package render

import "slices"

// statement renders the statement with its edits.
func (w *writer) statement() string {
	const rowsValue = 8 // bytes of a value among many rows
	w.b.Grow(len(w.Src) + rowsValue*len(w.Fragments))
	if w.checked {
		w.fragments = slices.Grow(w.fragments, len(w.Fragments))
	}
	if len(w.Fragments) > manyNumbers && !w.literal && !w.Dialect.numbers() { // each use of a value is an argument
		w.numbers.added = slices.Grow(w.numbers.added, len(w.Fragments))
	}
	last := int32(0)
	for i := range w.Fragments {
		e := &w.Fragments[i]
		w.b.WriteString(w.Src[last:e.At])
		last = e.At
		lo := w.b.Len()
		if e.apart&before != 0 {
			w.b.WriteString(" ")
		}
		if w.Counts {
			w.numbers.before = int(e.Inputs)
		}
		w.fragment(e)
		if e.apart&after != 0 {
			w.b.WriteString(" ")
		}
		if !w.checked {
			continue
		}
		w.fragments = append(w.fragments, fragment{int32(lo), int32(w.b.Len()), e.At, e.Op})
	}
	w.b.WriteString(w.Src[last:])
	return w.b.String()
}

func (w *writer) fragment(e *Fragment) {
	switch e.Op {
	case opText:
		w.write(e.Text)
		return
	case OpWith:
		w.ledgerItems(e.Text, w.Plan.Targets[e.Target:e.Row])
		return
	case OpRepeat:
		w.repeat(e)
		return
	}
	w.choose(int(e.Target))
	w.deletes = e.Op == OpCheckDeleted
	switch e.Op {
	case OpAbort:
		w.write(" OR ABORT")
	case OpFirst:
		w.checkFirst(e.Rules)
	case OpAssign:
		for r := range texts {
			if e.Rules.Has(r) {
				texts[r].assigns(w)
			}
		}
	case OpCheck, OpCheckDeleted, OpAnd:
		w.check(e.Rules)
	case OpColumn:
		if w.compared() {
			w.write(e.Text)
		}
	case OpValue:
		if !w.repeatsValue(e) {
			lo := w.b.Len()
			w.rowValue(e)
			w.value, w.valueLo, w.valueHi = e, lo, w.b.Len()
		}
	case OpValueChecking, OpRowAssign, OpRowAssignChecking:
		w.rowValue(e)
	case OpBeforeRow, OpAfterRow:
		w.aroundRow(e)
	case OpTail:
		w.tail()
	case OpBeforeAssigned:
		numbers{w}.beforeAssigned()
	case OpAfterAssigned:
		numbers{w}.afterAssigned()
	case OpStored:
		w.stored()
	case OpGone:
		numbers{w}.gone()
	}
}

// repeatsValue writes the previous row's value again if the fragment e has the same text for its row: one token must
// cover all rows, and each use of the token must have the same placeholder.
func (w *writer) repeatsValue(e *Fragment) bool {
	last := w.value
	same := last != nil && last.Target == e.Target && last.Text == e.Text && w.Replacement == nil &&
		(w.literal || w.Dialect.numbers()) && !w.hasRows()
	if same {
		w.b.Repeat(w.valueLo, w.valueHi)
	}
	return same
}

// rowValue writes the token of a row to insert, if the row gets a token.
func (w *writer) rowValue(e *Fragment) {
	if !w.compared() {
		if e.Text == "" { // the only column
			w.write("NULL")
		}
		return
	}
	w.write(e.Text)
	asks := (e.Op == OpValueChecking || e.Op == OpRowAssignChecking) && w.refuses(SetOf(RuleLedger))
	if asks {
		w.checkBefore()
	}
	w.insertedToken(e)
	if asks {
		w.write(" END")
	}
}
