package confirm

import "strconv"

// inputs is what a scanner has seen of a text's placeholders.
type inputs struct {
	bare    int  // how many have no number: each counts from the highest one so far
	highest int  // number
	jumps   bool // a number is higher than the next one
}

// see notes a placeholder with these digits.
func (in *inputs) see(digits string) {
	if digits == "" {
		in.bare++
		in.highest++
		return
	}
	n, err := strconv.Atoi(digits)
	in.jumps = in.jumps || err != nil || n > in.highest+1
	in.highest = max(in.highest, n)
}

// Counts reports whether the text that was confirmed has placeholders for this many
// arguments, of which some have no number: with these none may be left out, so that each
// stands for the same argument as before.
func (c *Check) Counts(all, bare int) bool {
	return c.inputs.highest == all && c.inputs.bare == bare && (bare == 0 || !c.inputs.jumps)
}
