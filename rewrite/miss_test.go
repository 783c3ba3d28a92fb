package rewrite

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
	"github.com/sqlfence/sqlfence/internal/test/random"
)

// A missed is a statement whose plan isn't in the cache. %d makes its texts different.
type missed struct {
	name, rules, sql string
}

// members returns a list of n numbered members.
func members(n int, format string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, format, 2*i+1, 2*i+2)
	}
	return b.String()
}

var numberedInput = regexp.MustCompile(`\$\d+`)

// in returns the statement in the SQL of a dialect.
func (m missed) in(d databases.Dialect) string {
	switch d {
	case databases.SQLite:
		return strings.NewReplacer("$", "?", "= ANY(ARRAY[", "IN (", "])", ")").Replace(m.sql)
	case databases.MySQL:
		sql := strings.NewReplacer("= ANY(ARRAY[", "IN (", "])", ")", "ON CONFLICT (id) DO UPDATE SET price = excluded.price",
			"ON DUPLICATE KEY UPDATE price = VALUES(price)", " --", " -- ").Replace(m.sql)
		return numberedInput.ReplaceAllString(sql, "?")
	}
	return m.sql
}

var missedShort = []missed{
	{"UPDATE", "row", "UPDATE books SET price = $1 WHERE id = $2 --%d"},
	{"UPDATE", "ledger", "UPDATE books SET price = $1 WHERE id = $2 --%d"},
	{"DELETE", "row", "DELETE FROM books WHERE id = $1 --%d"},
	{"INSERT", "row", "INSERT INTO books (id, price) VALUES ($1, $2) --%d"},
	{"upsert", "row", "INSERT INTO books (id, price) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET price = excluded.price --%d"},
	{"20 columns", "row", "UPDATE books SET " + members(20, "column_%d = $%d") + " WHERE id = $1 --%d"},
}

var missedLists = []missed{
	{"IN 2000 numbers", "row", "UPDATE books SET price = $1 WHERE id IN (" + members(2000, "%[1]d") + ") --%d"},
	{"IN 2000 placeholders", "row", "UPDATE books SET price = $1 WHERE id IN (" + members(2000, "$%[1]d") + ") --%d"},
	{"IN 2000 strings", "row", "UPDATE books SET price = $1 WHERE id IN (" + members(2000, "'a%[1]d'") + ") --%d"},
	{"ANY 2000", "row", "UPDATE books SET price = $1 WHERE id = ANY(ARRAY[" + members(2000, "$%[1]d") + "]) --%d"},
	{"1000 rows", "row", "INSERT INTO books (id, price) VALUES " + members(1000, "($%d, $%d)") + " --%d"},
	{"1000 rows of constants", "ledger", "INSERT INTO books (id, title) VALUES " + members(1000, "(%d, 'title %d')") + " --%d"},
}

// BenchmarkMiss makes the plan of a text that isn't in the cache, and keeps it.
func BenchmarkMiss(b *testing.B) {
	for _, d := range guardedDialects(b) {
		for _, m := range append(missedShort, missedLists...) {
			b.Run(d.String()+"/"+m.rules+"/"+m.name, func(b *testing.B) { benchMiss(b, d, m.rules, m.in(d)) })
		}
	}
}

func benchMiss(b *testing.B, d databases.Dialect, rules, sql string) {
	r, err := New(d, []Table{rulesets[rules].table})
	if err != nil {
		b.Fatal(err)
	}
	texts := make([]string, 8192)
	if len(sql) > 1000 {
		texts = texts[:256]
	}
	for i := range texts {
		texts[i] = fmt.Sprintf(sql, i)
	}
	b.SetBytes(int64(len(sql)))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if p := r.Plan(texts[i%len(texts)]); p.Verdict != guard.Guard {
			b.Fatal(p.Refusal)
		}
	}
}

// TestMissAllocations limits the allocations of planning a text that isn't in the cache, including the cached data, for
// lists of any length.
func TestMissAllocations(t *testing.T) {
	if fakedb.Race {
		t.Skip("the race detector empties the pools")
	}
	const atMost = 8
	runs := random.Rounds(t, 300)
	for _, m := range append(missedShort, missedLists...) {
		for _, d := range guardedDialects(t) {
			r, err := New(d, []Table{rulesets[m.rules].table})
			if err != nil {
				t.Fatal(err)
			}
			texts, format, i := make([]string, runs+1), m.in(d), 0
			for i := range texts {
				texts[i] = fmt.Sprintf(format, i)
			}
			got := testing.AllocsPerRun(runs, func() {
				r.Plan(texts[i]).Default()
				i++
			})
			if got > atMost {
				t.Errorf("%v, %s: %v allocations, want at most %d", d, m.name, got, atMost)
			}
		}
	}
}
