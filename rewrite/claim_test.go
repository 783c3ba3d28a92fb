package rewrite

import (
	"strings"
	"testing"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/guard"
)

func TestClaimGoesWithKeyAlone(t *testing.T) {
	claimed := func(change func(*Table)) Table {
		table := Table{Name: "books", Key: "id", Claim: "attempt"}
		change(&table)
		return table
	}
	for what, change := range map[string]func(*Table){
		"no key":         func(t *Table) { t.Key = "" },
		"its key":        func(t *Table) { t.Key = "attempt" },
		"a fence column": func(t *Table) { t.FenceColumn = "fence_token" },
		"its own column": func(t *Table) { t.FenceColumn = "attempt" },
		"the ledger":     func(t *Table) { t.Ledger = true },
		"SingleUse":      func(t *Table) { t.SingleUse = true },
		"a serial":       func(t *Table) { t.Serial = "serial" },
		"its serial":     func(t *Table) { t.Serial = "attempt" },
		"a lock":         func(t *Table) { t.Lock = goldenLock },
		"free inserts":   func(t *Table) { t.UnfencedInserts = true },
	} {
		if _, err := New(databases.MySQL, []Table{claimed(change)}); err == nil || !strings.Contains(err.Error(), "Claim") && !strings.Contains(err.Error(), "UnfencedInserts") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := New(databases.MySQL, []Table{claimed(func(*Table) {})}); err != nil {
		t.Error(err)
	}
}

func TestClaimOfGoesWithNoOtherTokens(t *testing.T) {
	of := func(change func(*Table)) []Table {
		table := Table{Name: "books", Ledger: true, ClaimOf: goldenClaims}
		change(&table)
		return []Table{table}
	}
	for what, change := range map[string]func(*Table){
		"no ledger":      func(t *Table) { t.Ledger, t.Serial = false, "serial" },
		"a fence column": func(t *Table) { t.FenceColumn = "fence_token" },
		"a claim":        func(t *Table) { t.Key, t.Claim = "id", "attempt" },
		"no claims":      func(t *Table) { t.ClaimOf = guard.Claims{Name: "jobs", Key: "id"} },
		"no table":       func(t *Table) { t.ClaimOf = guard.Claims{Key: "id", Claim: "attempt"} },
	} {
		if _, err := New(databases.Postgres, of(change)); err == nil || !strings.Contains(err.Error(), "Claim") {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, change := range map[string]func(*Table){
		"alone":        func(*Table) {},
		"a key":        func(t *Table) { t.Key = "id" },
		"a serial":     func(t *Table) { t.Serial = "serial" },
		"free inserts": func(t *Table) { t.UnfencedInserts = true },
	} {
		if _, err := New(databases.Postgres, of(change)); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Each variant has its own plans, and a plan's table has the properties of the table's rules.
func TestPlanKindsHaveSeparatePlans(t *testing.T) {
	r, err := New(databases.Postgres, []Table{{Name: "books", Serial: "serial"}, {Name: "jobs", Key: "id", Claim: "attempt"}})
	if err != nil {
		t.Fatal(err)
	}
	const query = "WITH j AS (UPDATE jobs SET state = 'new' WHERE id = 4) SELECT 1"
	const both = query + "; UPDATE books SET price = 1 WHERE id = 4"
	for range 2 { // the second time from the cache
		for v, want := range map[guard.PlanKind]struct{ free, versioned bool }{
			0: {}, guard.Versioned: {}, guard.TakesOver: {free: true}, guard.Versioned | guard.TakesOver: {free: true},
		} {
			p := r.PlanFor(query, v)
			if p.Verdict != guard.Guard || p.Targets[0].Free != want.free || p.Versioned || !p.Tokenless {
				t.Errorf("%d: %v %v", v, p.Verdict, p.Targets)
			}
			p = r.PlanFor("UPDATE books SET price = 1 WHERE id = 4", v)
			if p.Verdict != guard.Guard || p.Targets[0].Free || p.Versioned != (v&guard.Versioned != 0) {
				t.Errorf("%d: %v %v", v, p.Verdict, p.Targets)
			}
			if p := r.PlanFor(both, v); (p.Verdict == guard.Guard) != (v&guard.Versioned == 0) {
				t.Errorf("%d: %v %v", v, p.Verdict, p.Refusal)
			}
		}
	}
}
