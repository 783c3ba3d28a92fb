package rewrite

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

func TestCacheKeepsItsBound(t *testing.T) {
	c := newCache(3)
	for i := range 20 {
		c.put(fmt.Sprint(i), &Plan{Inputs: i})
		if len(c.slots) != min(i+1, 3) || len(c.ring) != len(c.slots) {
			t.Fatalf("after %d plans it has %d, and %d in the ring", i+1, len(c.slots), len(c.ring))
		}
		if p := c.get(fmt.Sprint(i)); p == nil || p.Inputs != i {
			t.Fatalf("plan %d: got %+v", i, p)
		}
	}
	if c.get("0") != nil {
		t.Error("the first plan is still there")
	}
	for query, s := range c.slots {
		if s.query != query {
			t.Errorf("slot %q holds the plan of %q", query, s.query)
		}
	}
}

func TestCacheFirstOfTwoStays(t *testing.T) {
	c, first := newCache(3), &Plan{}
	c.put("a", first)
	c.put("a", &Plan{})
	if c.get("a") != first || len(c.ring) != 1 {
		t.Errorf("got %p of %d, want %p of 1", c.get("a"), len(c.ring), first)
	}
}

// TestCacheSecondChance shows that what is asked for again outlives what isn't.
func TestCacheSecondChance(t *testing.T) {
	c := newCache(4)
	for _, q := range []string{"a", "b", "c", "d"} {
		c.put(q, &Plan{})
	}
	for i := range 100 {
		if c.get("b") == nil {
			t.Fatalf("the plan in use was dropped after %d others", i)
		}
		c.put(fmt.Sprint(i), &Plan{})
	}
	for _, q := range []string{"a", "c", "d"} {
		if c.get(q) != nil {
			t.Errorf("the plan of %q, in no use, is still there", q)
		}
	}
}

// TestCacheAllUsed shows that where all are in use the hand still finds one.
func TestCacheAllUsed(t *testing.T) {
	c := newCache(3)
	for i := range 10 {
		c.put(fmt.Sprint(i), &Plan{})
		for q := range c.slots {
			c.get(q)
		}
	}
	if len(c.slots) != 3 {
		t.Errorf("it has %d plans", len(c.slots))
	}
}

// TestPlanIsCached shows which plans are kept: of short texts that name a table.
func TestPlanIsCached(t *testing.T) {
	r, err := New(Postgres, []Table{rulesets["row"].table})
	if err != nil {
		t.Fatal(err)
	}
	long := "UPDATE books SET title = '" + strings.Repeat("x", maxCached) + "'"
	for _, tt := range []struct {
		query string
		kept  bool
	}{
		{"UPDATE books SET price = 1", true},
		{"SELECT * FROM books", true},
		{"DROP TABLE books", true},
		{"UPDATE other SET price = 1", false},
		{long, false},
	} {
		p := r.Plan(tt.query)
		if kept := r.plans.get(tt.query) != nil; kept != tt.kept {
			t.Errorf("%.40q: kept is %v", tt.query, kept)
		}
		if q := r.Plan(tt.query); tt.kept && p != q || p.Verdict != q.Verdict {
			t.Errorf("%.40q: got %p, then %p", tt.query, p, q)
		}
	}
}

// TestPlanConcurrently plans many texts in many goroutines; the race detector
// and the bound watch.
func TestPlanConcurrently(t *testing.T) {
	const goroutines, texts = 16, 5000
	r, err := New(SQLite, []Table{rulesets["both"].table})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for n := range texts {
				// All meet the same texts, half of them in the other order.
				i := n
				if g%2 == 1 {
					i = texts - 1 - n
				}
				query := fmt.Sprintf("DELETE FROM books WHERE id = ? AND n = %d", i)
				p := r.Plan(query)
				if p.Verdict != Guard || p.source.src != query || p.Inputs != 1 {
					t.Errorf("%q: got %v of %q", query, p.Verdict, p.source.src)
					return
				}
				if u, _ := p.Default(); !strings.Contains(u.SQL, fmt.Sprintf("n = %d)", i)) || len(u.Args) != 2 {
					t.Errorf("%q: got %+v", query, u)
					return
				}
			}
		})
	}
	wg.Wait()
	if got, want := len(r.plans.slots), r.plans.size; got != want || len(r.plans.ring) != want {
		t.Errorf("the cache holds %d plans, %d in the ring, want %d", got, len(r.plans.ring), want)
	}
}
