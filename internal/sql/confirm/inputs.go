package confirm

// inputs is what a scanner has seen of a text's placeholders. One without a number counts
// from the highest one so far.
type inputs struct {
	bare    int // how many have no number
	highest int
	added   int // how many have the number that one without a number would have
	wrong   bool
}

// see notes a placeholder with as many digits, and the number that they are; numbers are those that the guard adds.
func (in *inputs) see(digits, n int, numbers []int) {
	switch {
	case digits == 0:
		in.bare++
		in.highest++
	case n == tooLarge:
		in.wrong, in.highest = true, n
	case n <= in.highest:
	case n == in.highest+1:
		in.wrong = in.wrong || in.added == len(numbers) || numbers[in.added] != n
		in.added++
		in.highest = n
	default:
		in.wrong, in.highest = true, n
	}
}

// Number says that the guard adds an argument with a number, in the order of the text, to a
// statement with placeholders that have none.
func (c *Check) Number(n int) { c.numbers = append(c.numbers, n) }

// Counts reports whether the confirmed text has placeholders for this many arguments. If some have
// no number, the guard must have added all that have one, so that each of the statement's own
// stands for the same argument as before.
func (c *Check) Counts(all, bare int) bool {
	in := &c.inputs
	return in.highest == all && in.bare == bare && (bare == 0 || !in.wrong && in.added == len(c.numbers))
}
