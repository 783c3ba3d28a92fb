package read

// Items returns how many items a list has, and whether one of them may stand for several
// columns, as * does, and t.* and (row).* do, also with a label.
func (t *Text) Items(list Span) (n int32, expands bool) {
	for i, hi := int(list.Lo), int(list.Hi); i < hi; n++ {
		end := t.itemEnd(i, hi)
		for at := i; at < end; at = t.skip(at) {
			operand := at > i && at+1 < end && !t.Tokens[at-1].Is('.') // on both sides
			expands = expands || t.Tokens[at].Is('*') && !operand
		}
		i = end + 1
	}
	return n, expands
}
