package rewrite

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

// ofBytes returns a plan that takes about n bytes with a short query.
func ofBytes(n int) *Plan {
	return &Plan{Verdict: guard.Refuse, Refusal: guard.Refusal{Reason: strings.Repeat("x", max(0, n-slotBytes-(&Plan{}).Size()))}}
}

func (c *cache) keep(query string, p *Plan) { c.put(query, c.hash(query), p) }

func (c *cache) find(query string) *Plan { return c.get(query, c.hash(query)) }

// checkCache checks that the ring holds all slots of the cache, within the cache's limit.
func checkCache(t *testing.T, c *cache) {
	t.Helper()
	ring, bytes := 0, 0
	for s := c.hand; s != nil && ring <= len(c.slots); {
		if c.slots[c.hash(s.query)] != s || s.hash != c.hash(s.query) || s.next.before != s {
			t.Fatalf("the ring has %.40q, which isn't its place", s.query)
		}
		ring, bytes = ring+1, bytes+s.bytes
		if s = s.next; s == c.hand {
			break
		}
	}
	if ring != len(c.slots) || bytes != c.bytes || bytes > c.max {
		t.Fatalf("it has %d plans, %d in the ring, of %d bytes, counted %d of %d", len(c.slots), ring, bytes, c.bytes, c.max)
	}
}

func TestCacheKeepsItsBound(t *testing.T) {
	c := newCache(40 << 10)
	for i := range 200 {
		query, p := fmt.Sprint(i), ofBytes(1000+i*7%4000)
		c.keep(query, p)
		checkCache(t, c)
		if c.find(query) != p {
			t.Fatalf("plan %d isn't kept", i)
		}
	}
	if n := len(c.slots); n < 8 || c.bytes < c.max-5000 {
		t.Errorf("it has only %d plans of %d bytes", n, c.bytes)
	}
	if c.find("0") != nil {
		t.Error("the first plan is still there")
	}
}

func TestCacheFirstOfTwoStays(t *testing.T) {
	c, first := newCache(20<<10), &Plan{}
	c.keep("a", first)
	c.keep("a", &Plan{})
	checkCache(t, c)
	if c.find("a") != first || len(c.slots) != 1 {
		t.Errorf("got %p of %d, want %p of 1", c.find("a"), len(c.slots), first)
	}
}

// TestCacheSameHash shows that a text never gets the plan of another text with the same hash.
func TestCacheSameHash(t *testing.T) {
	c, first := newCache(20<<10), &Plan{}
	c.put("a", 1, first)
	if c.get("b", 1) != nil {
		t.Error("b has the plan of a")
	}
	c.put("b", 1, &Plan{})
	if c.get("a", 1) != first || c.get("b", 1) != nil || len(c.slots) != 1 {
		t.Errorf("a has %p, b %p, of %d", c.get("a", 1), c.get("b", 1), len(c.slots))
	}
}

// TestCacheSecondChance shows that a plan that is requested again outlives plans without a second request.
func TestCacheSecondChance(t *testing.T) {
	c := newCache(16 << 10)
	for _, q := range []string{"a", "b", "c", "d"} {
		c.keep(q, ofBytes(2000))
	}
	for i := range 100 {
		if c.find("b") == nil {
			t.Fatalf("the plan in use was dropped after %d others", i)
		}
		c.keep(fmt.Sprint(i), ofBytes(2000))
	}
	for _, q := range []string{"a", "c", "d"} {
		if c.find(q) != nil {
			t.Errorf("the plan of %q, in no use, is still there", q)
		}
	}
}

// TestCacheAllUsed checks that the clock's hand finds a plan to drop even if all plans were used.
func TestCacheAllUsed(t *testing.T) {
	c := newCache(24 << 10)
	for i := range 100 {
		c.keep(fmt.Sprint(i), ofBytes(3000))
		for _, s := range c.slots {
			c.find(s.query)
		}
		checkCache(t, c)
	}
	if len(c.slots) != 8 {
		t.Errorf("it has %d plans", len(c.slots))
	}
}

// TestCacheHugePlan shows that a plan above the limit for one plan isn't cached, and that a plan just below this limit
// drops only its share of the other plans.
func TestCacheHugePlan(t *testing.T) {
	c := newCache(100 << 10)
	for i := range 100 {
		c.keep(fmt.Sprint(i), ofBytes(1000))
	}
	full := len(c.slots)
	c.keep("too much", ofBytes(c.max/maxShare+1))
	if c.find("too much") != nil || len(c.slots) != full {
		t.Errorf("the plan that takes too much is kept, beside %d of %d", len(c.slots), full)
	}
	c.keep("much", ofBytes(c.max/maxShare-100))
	if c.find("much") == nil || len(c.slots) < full-full/maxShare-1 {
		t.Errorf("beside the plan that takes much there are %d of %d", len(c.slots), full)
	}
	checkCache(t, c)
}

// TestPlanIsCached compares which plans the cache keeps: the plans of texts that name a table and aren't too long.
func TestPlanIsCached(t *testing.T) {
	r, err := New(databases.Postgres, []Table{rulesets["row"].table})
	if err != nil {
		t.Fatal(err)
	}
	title := func(n int) string {
		const sql = "UPDATE books SET title = ''"
		return strings.Replace(sql, "''", "'"+strings.Repeat("x", n-len(sql))+"'", 1)
	}
	for _, tt := range []struct {
		query string
		kept  bool
	}{
		{"UPDATE books SET price = 1", true},
		{"SELECT * FROM books", true},
		{"DROP TABLE books", true},
		{"UPDATE other SET price = 1", false},
		{title(maxCached), true},
		{title(maxCached + 1), false},
	} {
		p := r.Plan(tt.query)
		if kept := r.plans[0].find(tt.query) != nil; kept != tt.kept {
			t.Errorf("%.40q: kept is %v", tt.query, kept)
		}
		if q := r.Plan(tt.query); tt.kept && p != q || p.Verdict != q.Verdict {
			t.Errorf("%.40q: got %p, then %p", tt.query, p, q)
		}
	}
}

// TestCacheCountsItsBytes compares the bytes that the cache counts with the growth of the heap. The cache's number is
// somewhat too high, because it includes constants that all plans share.
func TestCacheCountsItsBytes(t *testing.T) {
	if fakedb.Race {
		t.Skip("the race detector changes the heap")
	}
	atLeast := cacheBytes / 2
	if testing.Short() {
		atLeast /= 8
	}
	queries := map[string]struct {
		rules string
		sql   func(i int) string
	}{
		"short":   {"row", func(i int) string { return fmt.Sprintf("UPDATE books SET price = $1 WHERE id = %d", i) }},
		"passes":  {"row", func(i int) string { return fmt.Sprintf("SELECT * FROM books WHERE id = %d", i) }},
		"refused": {"row", func(i int) string { return fmt.Sprintf("DROP TABLE books, other%d", i) }},
		"ledger":  {"ledger", func(i int) string { return fmt.Sprintf("DELETE FROM books WHERE id = %d", i) }},
		"upsert": {"both", func(i int) string {
			return fmt.Sprintf("INSERT INTO books (id, a) VALUES ($1, %d) ON CONFLICT (id) DO UPDATE SET a = excluded.a", i)
		}},
		"list": {"row", func(i int) string {
			return fmt.Sprintf("DELETE FROM books WHERE id IN (%d%s)", i, strings.Repeat(", $1", 1000))
		}},
		"placeholders": {"row", func(i int) string {
			return fmt.Sprintf("DELETE FROM books WHERE id IN (%d%s)", i, strings.Repeat(", ?", 1000))
		}},
		"parts": {"row", func(i int) string {
			return fmt.Sprintf("DELETE FROM books WHERE random() > %d%s", i, strings.Repeat(" AND a = ?", 200))
		}},
		"writes": {"row", func(i int) string {
			return fmt.Sprintf("WITH %s x AS (SELECT %d) UPDATE books SET a = 1", strings.Repeat("y AS (UPDATE books SET a = 1), ", 100), i)
		}},
		"rows": {"row", func(i int) string {
			return fmt.Sprintf("INSERT INTO books (id) VALUES (%d)%s", i, strings.Repeat(", (1)", 1000))
		}},
		"rows with keys": {"key", func(i int) string {
			return fmt.Sprintf("INSERT INTO books (id, a) VALUES (%d, 1)%s", i, strings.Repeat(", ($1, 2)", 1000))
		}},
	}
	for name, q := range queries {
		for _, d := range guardedDialects(t) {
			t.Run(d.String()+"/"+name, func(t *testing.T) {
				r, err := New(d, []Table{rulesets[q.rules].table})
				if err != nil {
					t.Fatal(err)
				}
				before := heap()
				for i := 0; r.plans[0].bytes < atLeast; i++ {
					r.Plan(q.sql(i))
				}
				grown := int(heap() - before)
				if counted := r.plans[0].bytes; grown > counted*11/10 || counted > grown*3/2 {
					t.Errorf("%d plans: the heap grows by %d, %d are counted", len(r.plans[0].slots), grown, counted)
				}
				runtime.KeepAlive(r)
			})
		}
	}
}

// heap returns the bytes that are in use.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // the second one empties the pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestPlanConcurrently plans many texts in many goroutines; the race detector
// and the bound watch.
func TestPlanConcurrently(t *testing.T) {
	const goroutines, texts = 16, 5000
	r, err := New(databases.SQLite, []Table{rulesets["both"].table})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for n := range texts {
				// All goroutines plan the same texts, half of the goroutines in reverse order.
				i := n
				if g%2 == 1 {
					i = texts - 1 - n
				}
				query := fmt.Sprintf("DELETE FROM books WHERE id = ? AND n = %d", i)
				p := r.Plan(query)
				if p.Verdict != guard.Guard || p.Source.Src != query || p.Inputs != 1 {
					t.Errorf("%q: got %v of %q", query, p.Verdict, p.Source.Src)
					return
				}
				if u, args, _ := p.Default(); !strings.Contains(u, fmt.Sprintf("n = %d)", i)) || len(args) != 2 {
					t.Errorf("%q: got %+v", query, u)
					return
				}
			}
		})
	}
	wg.Wait()
	checkCache(t, r.plans[0])
	if n := len(r.plans[0].slots); n == texts || n < 1000 {
		t.Errorf("the cache holds %d of %d plans", n, texts)
	}
}
