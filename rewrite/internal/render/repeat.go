package render

import (
	"slices"
)

// Repeats are the placeholders without numbers in the parts of conditions that are
// repeated, where they would count as further arguments.
type Repeats struct {
	Bare []Bare
	Ends []int32 // of each part that has some, in bare
}

// Bare is a placeholder without a number.
type Bare struct {
	End    int32 // in the text of its part
	Number int32 // among the statement's own
}

// NoBare is a part without any.
const NoBare = -1

// manyRepeated is how many placeholders get the numbers of those that they repeat. SQLite looks for
// each of them among the numbers before it. If there are more, they stay as they are, and the
// values are passed once more.
const manyRepeated = 16

// manyNumbered is how many placeholders get numbers at most where there is no room to pass their values once
// more: SQLite takes a second for 16,000. A part with more isn't repeated, so that no index is used for it.
const manyNumbered = 1024

// repeat writes a repeated part, with the same arguments.
func (w *writer) repeat(e *Edit) {
	r, last := &w.Repeats, int32(0)
	numbers := w.Dialect.numbers()
	again := w.Counts && (!w.literal || w.passesAgain) && (len(r.Bare) > manyRepeated || !numbers)
	if n := len(r.of(e.Row)); !again && n > 0 {
		if w.numbered += n; !numbers || w.numbered > manyNumbered {
			return // it would only help an index
		}
	}
	if again {
		w.numbers.added = slices.Grow(w.numbers.added, len(r.of(e.Row)))
	}
	w.write(" AND (")
	for _, b := range r.of(e.Row) {
		if again {
			w.numbers.add(Arg{Again: int(b.Number)})
			continue
		}
		w.write(e.Text[last:b.End])
		w.b.Int(int64(w.numbers.own(int(b.Number))))
		last = b.End
	}
	w.write(e.Text[last:], ")")
}

// of returns the placeholders of a part.
func (r *Repeats) of(part int32) []Bare {
	switch part {
	case NoBare:
		return nil
	case 0:
		return r.Bare[:r.Ends[0]]
	}
	return r.Bare[r.Ends[part-1]:r.Ends[part]]
}
