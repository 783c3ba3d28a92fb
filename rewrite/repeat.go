package rewrite

import "github.com/sqlfence/sqlfence/rewrite/internal/read"

// repeats are the parts of conditions that are repeated and have placeholders without
// numbers, which would count as further arguments.
type repeats struct {
	parts []repeatedPart
	bare  []bare // of all parts
}

// A repeatedPart has some of the bare placeholders, up to an index.
type repeatedPart struct {
	text string
	hi   int
}

// bare is a placeholder without a number.
type bare struct {
	end    int // in the text of its part
	number int // among the statement's own
}

// manyRepeated is how many placeholders get the numbers of those that they repeat, each
// of which SQLite looks for among the numbers before it. If there are more, they stay as
// they are, and the values are passed once more.
const manyRepeated = 16

// repeat repeats a part of a condition behind it.
func (p *planner) repeat(part read.Span, at int32) {
	text, begin, r := p.Source(part), p.Offset(part.Lo), &p.repeats
	known := len(r.bare)
	p.EachBare(part, func(end int32, number int) { r.bare = append(r.bare, bare{int(end - begin), number}) })
	if len(r.bare) == known {
		p.insertText(at, " AND ("+text+")")
		return
	}
	p.edits = append(p.edits, edit{at: at, op: opRepeat, row: int32(len(r.parts))})
	r.parts = append(r.parts, repeatedPart{text, len(r.bare)})
}

// repeat writes a repeated part, with the same arguments.
func (w *writer) repeat(part int) {
	r, lo, last := &w.repeats, 0, 0
	if part > 0 {
		lo = r.parts[part-1].hi
	}
	text, again := r.parts[part].text, w.counts && !w.literal && len(r.bare) > manyRepeated
	w.write(" AND (")
	for _, b := range r.bare[lo:r.parts[part].hi] {
		if again {
			w.numbers.add(Arg{Again: b.number})
			continue
		}
		w.write(text[last:b.end])
		w.b.Int(int64(w.numbers.own(b.number)))
		last = b.end
	}
	w.write(text[last:], ")")
}
