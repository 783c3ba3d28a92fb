package render

import "sort"

// numbering numbers the arguments that a rendering adds to the statement's own. They are
// numbered from left to right, as a database counts placeholders without numbers: an
// added one has the number that such a placeholder would have in its place.
type numbering struct {
	before int // how many of the statement's own are counted before the next one that is added
	added  []Arg

	index map[value]int // the numbers, if there are many
}

// manyNumbers is how many arguments are searched one by one.
const manyNumbers = 8

// of returns the number of the argument for a value, which it adds if there is none yet.
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

// own returns the number of the statement's own argument that had the number was there.
func (n *numbering) own(was int) int {
	return was + sort.Search(len(n.added), func(i int) bool { return n.added[i].Number-i > was })
}
