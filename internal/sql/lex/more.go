package lex

import "slices"

// More makes room for more in a slice that is full. The last n were found in the first done of all:
// it makes room for the rest, if they are as close there. A slice that grows by a factor takes
// several times its room in the end.
func More[T any](s []T, n, done, all int) []T {
	const factor = 64 // at most, as the beginning may be unlike the rest
	rest := int64(n) * int64(all-done) / int64(done+1)
	return slices.Grow(s, 8+int(min(rest+rest/16, int64(factor*n))))
}
