// Package similar finds names with a small edit distance.
package similar

import (
	"slices"
	"strings"
)

// Propose returns a sentence with up to three known names that are similar to an unknown name; empty if no name is
// similar.
func Propose(name string, known []string) string {
	best, near := max(1, min(3, len(name)/3)), []string(nil)
	for _, k := range known {
		switch d := distance(strings.ToLower(name), strings.ToLower(k)); {
		case k == name, d > best:
		case d < best:
			best, near = d, []string{k}
		case !slices.Contains(near, k):
			near = append(near, k)
		}
	}
	if len(near) == 0 {
		return ""
	}
	slices.Sort(near)
	return "Did you mean " + strings.Join(near[:min(3, len(near))], " or ") + "? "
}

// IsNear reports whether two names differ by their case, or by one letter of more than two.
func IsNear(a, b string) bool {
	return strings.EqualFold(a, b) || min(len(a), len(b)) > 2 && distance(strings.ToLower(a), strings.ToLower(b)) == 1
}

// distance counts the letters to insert, delete, change or swap with the next letter to turn a into b.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	before, last := []int(nil), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := range x {
		row := make([]int, len(y)+1)
		row[0] = i + 1
		for j := range y {
			cost := 1
			if x[i] == y[j] {
				cost = 0
			}
			row[j+1] = min(row[j]+1, last[j+1]+1, last[j]+cost)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(y)]
}
