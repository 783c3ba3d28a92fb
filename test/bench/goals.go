package main

import (
	"fmt"
	"slices"
	"strings"
)

// A goal is what sqlfence aims at, and how to see in the results whether it is reached. limit is why it isn't, where it
// isn't; empty if nobody has found it out.
type goal struct {
	aim, limit string
	found      func(v view) finding
}

// A finding is what was measured for a goal.
type finding struct {
	text    string // empty: it wasn't measured
	reached bool
}

// A view is the results with the sqlfence of this checkout, or of -base.
type view struct {
	*results
	suffix string
}

// goals writes the table of goals.
func (r *results) goals(b *strings.Builder) {
	b.WriteString("## Goals\n\nWhat sqlfence aims at, and what this run found. \"Worst\" is the highest median among the measurements that count.\n\n")
	columns := []string{"goal", "measured", "reached", "limit"}
	if r.config.base != "" {
		columns = append(columns, "before")
	}
	row(b, columns)
	fmt.Fprintf(b, "%s|\n", strings.Repeat("|---", len(columns)))
	for _, g := range goals {
		now := g.found(view{r, ""})
		verdict := "no"
		switch {
		case now.text == "":
			now.text, verdict = "not measured", "–"
		case now.reached:
			verdict = "yes"
		}
		limit := g.limit
		if verdict != "no" {
			limit = ""
		}
		cells := []string{g.aim, now.text, verdict, limit}
		if r.config.base != "" {
			cells = append(cells, g.found(view{r, beforeSuffix}).text)
		}
		row(b, cells)
	}
	b.WriteString("\n")
}

var goals = []goal{
	{"INSERT of 1,000 to 30,000 rows at most 1.3 times the plain one, for every rule and kind of placeholder",
		"a row's text is read twice and gets a value, which the database reads too; the plain INSERT takes mattn 0.2 µs a row, and reading takes as long",
		func(v view) finding { return v.worst(1.3, inGroup("bulk").and(inTable("INSERT")), ruleNames()...) }},
	{"UPDATE and DELETE of 1,000 rows under Ledger at most 1.2 times raw on SQLite",
		"SQLite updates in two passes if WHERE has a subquery (WHERE_ONEPASS_MULTIROW in its update.c)",
		func(v view) finding {
			return v.worst(1.2, inGroup("bulk").and(inTable("UPDATE and DELETE"), on("mattn", "modernc")), "Ledger")
		}},
	{"A text that names no registered table costs the same with 1 and 10,000 tables", "",
		func(v view) finding { return v.passing(1.1) }},
	{"… at most 1 ns a byte, and 0 allocations", "",
		func(v view) finding { return v.passingByte() }},
	{"rewrite.New for 10,000 tables in milliseconds",
		"2.5 µs a table",
		func(v view) finding {
			return v.value(10e6, "wrapper", "rewrite.New", "10,000 registered tables", unitTime, duration)
		}},
	{"A guarded db.Exec on SQLite in memory at most 0.8 times raw: RowFence, Ledger, Serial",
		"Ledger searches fencing_tokens in each statement",
		func(v view) finding {
			return v.worst(0.8, inGroup("kinds").and(inTable("db.Exec"), on("mattn, in memory", "modernc, in memory"), named("UPDATE by key", "INSERT")),
				"RowFence", "Ledger", "Serial")
		}},
	{"Ledger is faster than the blog's two statements on SQLite in memory", "",
		func(v view) finding {
			return v.beside(1, inGroup("ways").and(inTable("1 caller"), on("mattn, in memory", "modernc, in memory")), "sqlfence, Ledger", "SELECT the token, then UPDATE (the blog)")
		}},
	{"A refusal through pgx takes no more round trips than that by a CHECK", "",
		func(v view) finding { return v.refusals() }},
	{"A write of one row to a sealed table at most 1.25 times RowFence on PostgreSQL", "",
		func(v view) finding {
			return v.worst(1.25, inGroup("seals").and(inTable("One row"), on("pgx")), sealedFence)
		}},
	{"64 writers of one ledger name: no multixact", "",
		func(v view) finding { return v.meter(0.001, meterMulti) }},
	{"… at most 200 B of WAL a write", "",
		func(v view) finding { return v.meter(200, meterWAL) }},
	{"… at most 1.15 times raw server CPU",
		"a lock, a query with a snapshot of its own and WITH take 1.5 ([ADR 15](adr/0015-the-ledger-is-asked-by-a-function.md))",
		func(v view) finding { return v.meterRatio(1.15, meterCPU) }},
	{"The ledger's planning at most 1.6 times raw: a third of the 4.8 times that it was at first",
		"the check in WITH alone takes 1.8, that before the first row 2.2 (EXPLAIN of the statement with one of them)",
		func(v view) finding { return v.worst(1.6, inGroup("server").and(named("planning time")), "Ledger") }},
	{"Reading a new short UPDATE takes at most 1.5 µs",
		"36 % is the second look at the rendered text, which accepts nothing that isn't guarded",
		func(v view) finding {
			return v.value(1500, "wrapper", planned, "short UPDATE, new", unitTime, duration)
		}},
	{"… and at most 8 allocations", "",
		func(v view) finding {
			return v.value(8, "wrapper", planned, "short UPDATE, new", unitAllocs, func(n float64) string { return fmt.Sprintf("%.1f", n) })
		}},
	{"A known IN list of 5,000 isn't read again: at most 10 µs", "",
		func(v view) finding {
			return v.value(10e3, "wrapper", planned, "IN list of 5,000, known", unitTime, duration)
		}},
	{"IN lists that differ in length are no full reading each: at most 2 ns a byte",
		"the list is scanned, copied and compared: 3 passes",
		func(v view) finding {
			return v.value(2*inListBytes, "wrapper", planned, "IN lists of 2,000 to 2,999, new", unitTime, func(ns float64) string {
				return fmt.Sprintf("%.1f ns a byte", ns/inListBytes)
			})
		}},
	{"Acquire and release at least 0.9 of the limit's speed with 1, 16 and 64 callers", "",
		func(v view) finding { return v.worst(1/0.9, ownKeys, "lease") }},
	{"… ahead of etcd", "",
		func(v view) finding { return v.beside(1, ownKeys, "lease", "etcd, concurrency.Mutex") }},
	{"… ahead of pglock's statements", "",
		func(v view) finding { return v.beside(1, ownKeys, "lease", "pglock's statements, by hand") }},
	{"One key between processes at least as fast as etcd's queue", "",
		func(v view) finding {
			return v.beside(1, inGroup("leases").and(inTable("One key"), apart), "lease", "etcd, concurrency.Mutex")
		}},
}

const planned = "a statement on a registered table"

// inListBytes is the length of the lists that differ in length, on average.
var inListBytes = float64(len(inList(2_500)))

// A filter chooses measurements.
type filter func(m *measured) bool

func (f filter) and(more ...filter) filter {
	return func(m *measured) bool {
		return f(m) && !slices.ContainsFunc(more, func(f filter) bool { return !f(m) })
	}
}

func inGroup(name string) filter { return func(m *measured) bool { return m.group == name } }

func inTable(title string) filter { return func(m *measured) bool { return m.table == title } }

func on(targets ...string) filter {
	return func(m *measured) bool {
		return slices.ContainsFunc(targets, func(t string) bool { return strings.HasPrefix(m.on, t) })
	}
}

func named(names ...string) filter {
	return func(m *measured) bool {
		return slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(m.name, n) })
	}
}

func apart(m *measured) bool { return m.processes > 0 }

var ownKeys = inGroup("leases").and(inTable("A key for each caller"), func(m *measured) bool { return !m.far })

func ruleNames() []string {
	var names []string
	for _, r := range rules {
		names = append(names, r.name)
	}
	return names
}

// contestant returns the result of a contestant, in this view if there are several.
func (v view) contestant(m *measured, name string) *result {
	if v.suffix != "" {
		if !slices.ContainsFunc(m.results, func(r result) bool { return strings.HasSuffix(r.name, v.suffix) }) {
			return nil // it couldn't be measured before
		}
		if r := m.get(name + v.suffix); r != nil || slices.ContainsFunc(m.results, func(r result) bool { return r.name == name+v.suffix }) {
			return r
		}
	}
	return m.get(name)
}

// worst is the highest ratio of contestants to the first one.
func (v view) worst(limit float64, in filter, names ...string) finding {
	return v.highest(limit, in, names, func(m *measured) *result { return m.get(m.results[0].name) })
}

// beside returns the highest ratio of contestant name to contestant other.
func (v view) beside(limit float64, in filter, name, other string) finding {
	return v.highest(limit, in, []string{name}, func(m *measured) *result { return v.contestant(m, other) })
}

func (v view) highest(limit float64, in filter, names []string, other func(*measured) *result) finding {
	var high ratio
	var where string
	count, missing := 0, 0
	for _, m := range v.measured {
		if !in(m) {
			continue
		}
		for _, name := range names {
			a, b := v.contestant(m, name), other(m)
			if a == nil || b == nil {
				if v.slow(m, name) {
					missing++
				}
				continue
			}
			if found, ok := a.to(b, unitTime); ok {
				count++
				if found.median > high.median {
					high, where = found, name+", "+m.label()
				}
			}
		}
	}
	if count == 0 {
		return finding{}
	}
	text := fmt.Sprintf("worst %s (%s)", high, where)
	if missing > 0 {
		text += fmt.Sprintf("; %d more were too slow to run", missing)
	}
	return finding{text, missing == 0 && high.median <= limit}
}

// slow reports whether a contestant had no part because it took too long with less.
func (v view) slow(m *measured, name string) bool {
	for _, r := range m.results {
		if (r.name == name+v.suffix) && skipped(r.failed) && strings.HasPrefix(r.failed.Error(), tooSlow) {
			return true
		}
	}
	return false
}

// all returns the contestants' results in the measurements, in this view.
func (v view) all(in filter, names ...string) (found []*result) {
	for _, m := range v.measured {
		if in(m) {
			for _, name := range names {
				if r := v.contestant(m, name); r != nil {
					found = append(found, r)
				}
			}
		}
	}
	return found
}

// value is a quantity of one contestant.
func (v view) value(limit float64, group, measurement, contestant string, of func(sample) float64, format func(float64) string) finding {
	for _, r := range v.all(inGroup(group).and(named(measurement)), contestant) {
		found := r.median(of)
		return finding{format(found), found <= limit}
	}
	return finding{}
}

// passing compares 10,000 tables with 1.
func (v view) passing(limit float64) finding {
	return v.beside(limit, inGroup("wrapper").and(named("text of")), "10,000 registered tables", "1 registered table")
}

func (v view) passingByte() finding {
	long := inGroup("wrapper").and(named("text of 4,000"))
	for _, r := range v.all(long, "10,000 registered tables") {
		time, allocs := r.median(unitTime)/4_000, r.median(unitAllocs)
		return finding{fmt.Sprintf("%.2f ns a byte, %.1f allocations", time, allocs), time <= 1 && allocs < 0.5}
	}
	return finding{}
}

func (v view) refusals() finding {
	in := inGroup("refused").and(on("pgx"), func(m *measured) bool { return m.far })
	check := v.all(in, "CHECK, plain")
	if len(check) == 0 {
		return finding{}
	}
	f := most(check[0].trips, v.all(in, "stale, RowFence", "stale, Ledger"), func(r *result) float64 { return r.trips }, "%.1f")
	f.text += fmt.Sprintf(", CHECK %.1f", check[0].trips)
	return f
}

func (v view) writers() filter { return inGroup("server").and(inTable("64 writers")) }

// meter is the highest value of a server's counter under Ledger.
func (v view) meter(limit float64, name string) finding {
	return most(limit, v.all(v.writers(), "Ledger"), func(r *result) float64 { return r.median(unitMeter(name)) }, "%.3g")
}

// meterRatio is the same, as a multiple of the plain write's.
func (v view) meterRatio(limit float64, name string) finding {
	var high float64
	for _, m := range v.measured {
		plain, guarded := m.get("plain"), v.contestant(m, "Ledger")
		if !v.writers()(m) || plain == nil || guarded == nil {
			continue
		}
		if found, ok := guarded.to(plain, unitMeter(name)); ok {
			high = max(high, found.median)
		}
	}
	if high == 0 {
		return finding{}
	}
	return finding{fmt.Sprintf("worst %.2f", high), high <= limit}
}

func most(limit float64, all []*result, of func(*result) float64, format string) finding {
	if len(all) == 0 {
		return finding{}
	}
	high := of(all[0])
	for _, r := range all {
		high = max(high, of(r))
	}
	return finding{fmt.Sprintf(format, high), high <= limit}
}
