package report

import (
	"strings"
	"testing"
)

// The page finds checks by their names, so a run may have fewer checks or another order.
func TestChecksAreReadByName(t *testing.T) {
	table := checkTable([]Run{
		{Fence: "old", Checks: []Check{{Name: "second", Seen: "broken"}, {Name: "first"}}},
		{Fence: "new", Checks: []Check{{Name: "first", Seen: "broken"}, {Name: "between", Seen: "not asked", Without: true}, {Name: "second"}}},
	})
	for _, line := range []string{"| first | 1 | new |", "| between | 0 |  |", "| second | 1 | old |"} {
		if !strings.Contains(table, line) {
			t.Errorf("no line %q in\n%s", line, table)
		}
	}
}
