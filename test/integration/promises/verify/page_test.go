package verify_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/sqlfence/sqlfence/internal/catalogue"
)

// elsewhere are the codes that are provoked by other tests than TestFindings.
var elsewhere = []string{"wrong-server", "several-ledgers", "tokens-run-out", "different-registration", "missing-privilege", "other-writers", "wrong-seal", "setting", "unseen"}

// Each code is provoked, and every provoked code is known.
func TestEachCodeIsProvoked(t *testing.T) {
	var provoked []string
	known := slices.Sorted(maps.Keys(catalogue.Remedies))
	for _, p := range provocations {
		provoked = append(provoked, p.code)
	}
	if provoked = slices.Compact(slices.Sorted(slices.Values(append(provoked, elsewhere...)))); !slices.Equal(provoked, known) {
		t.Errorf("the tests provoke\n%q\nand the codes are\n%q", provoked, known)
	}
}
