package render

import (
	"slices"
	"sort"
)

// numbering numbers the arguments that a rendering adds to the statement's arguments. The numbers rise from left to
// right, as a database counts placeholders without numbers: an added argument has the number of a bare placeholder in
// its place.
type numbering struct {
	before int // number of the statement's placeholders before the next added placeholder
	added  []Arg

	index map[value]int // the numbers by value, if there are many
}

// manyNumbers is the highest number of arguments for a linear search.
const manyNumbers = 8

// of returns the number of the argument for a value. A missing argument is added.
func (n *numbering) of(v value) int {
	if n.index == nil && len(n.added) > manyNumbers {
		n.index = make(map[value]int)
		for _, a := range n.added {
			if a.Again == 0 {
				n.index[a.Of] = a.Number
			}
		}
	}
	if n.index == nil {
		for _, a := range n.added {
			if a.Again == 0 && a.Of == v {
				return a.Number
			}
		}
		return n.add(Arg{Of: v})
	}
	number := n.index[v]
	if number == 0 {
		number = n.add(Arg{Of: v})
		n.index[v] = number
	}
	return number
}

// add adds an argument, and returns its number.
func (n *numbering) add(a Arg) int {
	a.Number = n.before + len(n.added) + 1
	n.added = append(n.added, a)
	return a.Number
}

// own returns the number, in the rendered text, of the statement's argument with the number was in the source.
func (n *numbering) own(was int) int {
	return was + sort.Search(len(n.added), func(i int) bool { return n.added[i].Number-i > was })
}

// Repeats are the placeholders without numbers in the parts of conditions that are
// repeated, where they would count as further arguments.
type Repeats struct {
	Bare []Bare
	Ends []int32 // for each part with bare placeholders, the end of its placeholders in Bare
}

// Bare is a placeholder without a number.
type Bare struct {
	End    int32 // end of the placeholder in the text of the part
	Number int32 // number among the statement's own placeholders
}

// NoBare is the index of a part without bare placeholders.
const NoBare = -1

// manyRepeated is the most placeholders in repeated parts (see [Repeats]) that get the originals' numbers. More stay
// bare, and their values are passed once more, because SQLite searches all preceding numbers for each number.
const manyRepeated = 16

// manyNumbered is the most placeholders in repeated parts that get numbers if the statement has no room for their
// values once more: SQLite takes a second for 16,000. A part with more isn't repeated, so no index is used.
const manyNumbered = 1024

// repeat writes a repeated part, with the same arguments.
func (w *writer) repeat(e *Fragment) {
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
