package similar

import "testing"

func TestNamesLikeAnotherAreProposed(t *testing.T) {
	known := []string{"books", "pens", "Orders", "fence_token"}
	for name, want := range map[string]string{
		"bokos": "books", "book": "books", "Books": "books", "orders": "Orders", "fence_tokne": "fence_token", "fnce": "", "x": "", "nothing": "", "pencils": "",
	} {
		if got := Propose(name, known); got != "" && want == "" || want != "" && got != "Did you mean "+want+"? " {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
