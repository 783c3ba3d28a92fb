package rewrite

import (
	"fmt"
	"strings"
	"testing"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

const benchmarked = "UPDATE books SET price=$1 WHERE id=$2"

func benchRewriter(t testing.TB, d databases.Dialect) *Rewriter {
	t.Helper()
	r, err := New(d, []Table{rulesets["row"].table, {Name: "orders", Ledger: true}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// BenchmarkPlanCold reads a short statement that isn't in the cache, and renders it.
func BenchmarkPlanCold(b *testing.B) {
	r := benchRewriter(b, databases.Postgres)
	b.ReportAllocs()
	for b.Loop() {
		r.rules.Read(benchmarked, 0)
	}
}

// BenchmarkPlanColdOfMany is BenchmarkPlanCold among as many registered tables.
func BenchmarkPlanColdOfMany(b *testing.B) {
	for _, n := range []int{1, 100, 10_000} {
		tables := []Table{{Name: "books", FenceColumn: "fence_token"}}
		for i := 1; i < n; i++ {
			tables = append(tables, Table{Name: fmt.Sprint("pens", i), FenceColumn: "fence_token"})
		}
		r, err := New(databases.Postgres, tables)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r.rules.Read(benchmarked, 0)
			}
		})
	}
}

// BenchmarkPlanCached looks up a statement that is in the cache.
func BenchmarkPlanCached(b *testing.B) {
	r := benchRewriter(b, databases.Postgres)
	r.Plan(benchmarked)
	b.ReportAllocs()
	for b.Loop() {
		r.Plan(benchmarked).Default()
	}
}

// BenchmarkPlanCachedParallel is BenchmarkPlanCached with a goroutine for each CPU.
func BenchmarkPlanCachedParallel(b *testing.B) {
	r := benchRewriter(b, databases.Postgres)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			r.Plan(benchmarked)
		}
	})
}

// BenchmarkPlanUnregistered scans a statement that names no registered table.
func BenchmarkPlanUnregistered(b *testing.B) {
	r := benchRewriter(b, databases.Postgres)
	b.ReportAllocs()
	for b.Loop() {
		r.Plan("UPDATE prices SET price=$1 WHERE id=$2")
	}
}

// BenchmarkRender renders with values in the text, which is done for each execution.
func BenchmarkRender(b *testing.B) {
	p := benchRewriter(b, databases.SQLite).Plan("UPDATE books SET price=? WHERE id=?")
	v := Values{Tables: []TableValues{{Tokens: []Token{{Name: "books", Value: 42}}}}, Literal: true}
	b.ReportAllocs()
	for b.Loop() {
		p.Render(v)
	}
}

// BenchmarkPlanLong reads texts of 1 MB. Their rates should be similar.
func BenchmarkPlanLong(b *testing.B) {
	for _, l := range longTexts {
		b.Run(l.d.String()+"/"+l.name, func(b *testing.B) {
			r, err := New(l.d, []Table{rulesets["row"].table})
			if err != nil {
				b.Fatal(err)
			}
			sql := l.text(1 << 20)
			b.SetBytes(int64(len(sql)))
			b.ReportAllocs()
			for b.Loop() {
				if p := r.rules.Read(sql, 0); p.Verdict == guard.Guard {
					p.Render(Values{Tables: []TableValues{{Tokens: make([]Token, 1)}}})
				}
			}
		})
	}
}

// TestAllocations limits the allocations for a statement that isn't parsed, and for a short one.
func TestAllocations(t *testing.T) {
	r := benchRewriter(t, databases.Postgres)
	r.Plan(benchmarked).Default()
	for _, tt := range []struct {
		name   string
		atMost float64
		f      func()
	}{
		{"cached", 0, func() { r.Plan(benchmarked).Default() }},
		{"unregistered", 0, func() { r.Plan("UPDATE prices SET price=$1 WHERE id=$2") }},
		{"unregistered and long", 0, func() { r.Plan(longRead) }},
		{"cold", 4, func() { r.rules.Read(benchmarked, 0).Default() }},
	} {
		if got := testing.AllocsPerRun(200, tt.f); got > tt.atMost && !fakedb.Race {
			t.Errorf("%s: %v allocations, want at most %v", tt.name, got, tt.atMost)
		}
	}
}

var longRead = "SELECT " + strings.Repeat("b, ", 10_000) + "o FROM prices"
