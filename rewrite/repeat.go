package rewrite

import (
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"slices"
)

// repeats are the placeholders without numbers in the parts of conditions that are
// repeated, where they would count as further arguments.
type repeats struct {
	bare []bare
	ends []int32 // of each part that has some, in bare
}

// bare is a placeholder without a number.
type bare struct {
	end    int32 // in the text of its part
	number int32 // among the statement's own
}

// noBare is a part without any.
const noBare = -1

// manyRepeated is how many placeholders get the numbers of those that they repeat. SQLite looks for
// each of them among the numbers before it. If there are more, they stay as they are, and the
// values are passed once more.
const manyRepeated = 16

// manyNumbered is how many placeholders get numbers at most where there is no room to pass their values once
// more: SQLite takes a second for 16,000. A part with more isn't repeated, so that no index is used for it.
const manyNumbered = 1024

// repeat repeats a part of a condition behind it.
func (p *planner) repeat(part lex.Span, at int32) {
	begin, r := p.Offset(part.Lo), &p.repeats
	known := len(r.bare)
	r.bare = slices.Grow(r.bare, min(p.NumberInputs().Bare, int(part.Hi-part.Lo)))
	p.EachBare(part, func(end int32, number int) { r.bare = append(r.bare, bare{end - begin, int32(number)}) })
	index := int32(noBare)
	if len(r.bare) > known {
		index = int32(len(r.ends))
		r.ends = append(r.ends, int32(len(r.bare)))
	}
	p.edits = append(p.edits, edit{at: at, op: opRepeat, row: index, text: p.Source(part)})
}

// repeat writes a repeated part, with the same arguments.
func (w *writer) repeat(e *edit) {
	r, last := &w.repeats, int32(0)
	numbers := w.dialect.numbers()
	again := w.counts && (!w.literal || w.passesAgain) && (len(r.bare) > manyRepeated || !numbers)
	if n := len(r.of(e.row)); !again && n > 0 {
		if w.numbered += n; !numbers || w.numbered > manyNumbered {
			return // it would only help an index
		}
	}
	if again {
		w.numbers.added = slices.Grow(w.numbers.added, len(r.of(e.row)))
	}
	w.write(" AND (")
	for _, b := range r.of(e.row) {
		if again {
			w.numbers.add(Arg{Again: int(b.number)})
			continue
		}
		w.write(e.text[last:b.end])
		w.b.Int(int64(w.numbers.own(int(b.number))))
		last = b.end
	}
	w.write(e.text[last:], ")")
}

// of returns the placeholders of a part.
func (r *repeats) of(part int32) []bare {
	switch part {
	case noBare:
		return nil
	case 0:
		return r.bare[:r.ends[0]]
	}
	return r.bare[r.ends[part-1]:r.ends[part]]
}
