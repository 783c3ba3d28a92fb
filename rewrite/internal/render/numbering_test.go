package render

import "testing"

// The same value has the same number each time, even among arguments that are passed Again.
func TestNumbersOfTheSameValue(t *testing.T) {
	const values = 30
	n := numbering{before: 2}
	for range 3 {
		for i := range values {
			want := 2 + i + 1
			if i >= values/2 {
				want += 2
			}
			if i == values/2 && len(n.added) == i {
				n.add(Arg{Again: 1})
				n.before++ // one more argument of the statement itself
			}
			if got := n.of(value{Token: i}); got != want {
				t.Fatalf("value %d has the number %d, want %d", i, got, want)
			}
		}
	}
	if len(n.added) != values+1 {
		t.Errorf("%d are added, want %d", len(n.added), values+1)
	}
	for was, want := range []int{1: 1, 2: 2, 3: 2 + values/2 + 2, 4: 4 + values + 1} {
		if got := n.own(was); was > 0 && got != want {
			t.Errorf("the statement's own number %d is %d, want %d", was, got, want)
		}
	}
}
