package refusal

import (
	"errors"
	"fmt"
	"testing"

	"github.com/sqlfence/sqlfence"
)

// Each refusal has a separate name, and Named returns the refusal of the name.
func TestNamesOfRefusalsAreUnique(t *testing.T) {
	seen := make(map[string]bool)
	for _, n := range names {
		if got := Name(fmt.Errorf("saving: %w", n.is)); got != n.name || seen[got] || Named(got) != n.is {
			t.Errorf("%v is %q, which is %v", n.is, got, Named(got))
		}
		seen[n.name] = true
	}
	if Name(errors.New("another")) != "" || Named("") != nil {
		t.Error("another error has a name")
	}
	// An error with both sentinels gets the name of ErrInvalid, which is more specific.
	if got := Name(errors.Join(sqlfence.ErrNoFence, sqlfence.ErrInvalid)); got != "invalid" {
		t.Error(got)
	}
}
