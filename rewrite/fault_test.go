package rewrite

import (
	"os"
	"strings"
	"testing"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/fault"
	"github.com/sqlfence/sqlfence/internal/guard"
)

// TestMain lets the tests of this package see panics during planning.
func TestMain(m *testing.M) {
	fault.Crashes = true
	os.Exit(m.Run())
}

// If planning a statement panics, the statement is refused. Later statements are planned as usual.
func TestFaultIsRefusal(t *testing.T) {
	fault.Crashes = false
	defer func() { fault.Crashes = true }()
	r, err := New(databases.SQLite, []Table{{Name: "books", FenceColumn: "fence_token"}})
	if err != nil {
		t.Fatal(err)
	}
	const update = "UPDATE books SET price = 1 WHERE id = 1"
	registered := r.rules
	r.rules = nil // so that planning panics
	for _, plan := range []func(string) *Plan{r.Plan, func(query string) *Plan { return r.PlanFor(query, guard.Versioned) }} {
		p := plan(update)
		if p.Verdict != guard.Refuse || p.Refusal.Table != -1 || !strings.Contains(p.Refusal.Reason, "nil pointer") {
			t.Errorf("%v %+v", p.Verdict, p.Refusal)
		}
		if _, _, err := p.Render(Values{}); err == nil {
			t.Error("it can be rendered")
		}
	}
	r.rules = registered
	if p := r.Plan(update); p.Verdict != guard.Guard {
		t.Errorf("afterwards: %v %+v", p.Verdict, p.Refusal)
	}
}
