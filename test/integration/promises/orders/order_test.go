package orders_test

import (
	"slices"
	"testing"
)

// orders returns all orders of steps, each as a list of session numbers. Session i has left[i] steps. Sessions with the
// same number in twins, other than 0, are interchangeable, so the first of them begins first.
func orders(left, twins []int) (all [][]int) {
	begun := make([]bool, len(left))
	var order []int
	var extend func()
	extend = func() {
		whole := true
		for i := range left {
			if left[i] == 0 {
				continue
			}
			whole = false
			if !begun[i] && hasTwinBefore(i, twins, begun) {
				continue
			}
			was := begun[i]
			begun[i] = true
			left[i]--
			order = append(order, i)
			extend()
			order = order[:len(order)-1]
			left[i]++
			begun[i] = was
		}
		if whole {
			all = append(all, slices.Clone(order))
		}
	}
	extend()
	return all
}

// hasTwinBefore reports whether a session of the same kind, with a lower number, hasn't begun yet.
func hasTwinBefore(i int, twins []int, begun []bool) bool {
	for j := range i {
		if twins[i] != 0 && twins[j] == twins[i] && !begun[j] {
			return true
		}
	}
	return false
}

// The number of orders is the number of ways to interleave the sessions. Of twins it is half.
func TestOrdersAreAll(t *testing.T) {
	for _, tt := range []struct {
		left, twins []int
		want        int
	}{
		{[]int{3, 2}, []int{0, 0}, 10},
		{[]int{3, 4}, []int{0, 0}, 35},
		{[]int{3, 2, 2}, []int{0, 0, 0}, 210},
		{[]int{2, 2, 2}, []int{0, 1, 1}, 45},
		{[]int{3, 3, 3}, []int{0, 1, 1}, 840},
	} {
		all := orders(tt.left, tt.twins)
		if len(all) != tt.want {
			t.Errorf("%v: %d orders, want %d", tt.left, len(all), tt.want)
		}
		slices.SortFunc(all, slices.Compare)
		if distinct := slices.CompactFunc(all, slices.Equal); len(distinct) != tt.want {
			t.Errorf("%v: %d distinct orders of %d", tt.left, len(distinct), tt.want)
		}
	}
}
