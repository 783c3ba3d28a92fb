package orders_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
)

// page has the numbers of orders, and the figures of one run.
const page = "../../../../docs/data/orders.md"

var update = flag.Bool("update-orders", false, "write what is counted, and what came of it, into docs/data/orders.md")

// A figure is the sum of the results in a mode.
type figure struct {
	database, mode string
	orders, waited int
	outcomes       map[outcome]int
	took           time.Duration
}

func (f *figure) add(m *machine) {
	f.orders++
	if m == nil {
		return
	}
	if m.waits > 0 {
		f.waited++
	}
	for _, o := range m.history {
		f.outcomes[o.outcome]++
	}
}

func (f *figure) merge(of figure) {
	f.orders += of.orders
	f.waited += of.waited
	f.took += of.took
	for o, n := range of.outcomes {
		f.outcomes[o] += n
	}
}

// refused returns how many actions the rules have refused.
func (f *figure) refused() (n int) {
	for o, times := range f.outcomes {
		if o != done && o != constraint && !o.isConcurrency() {
			n += times
		}
	}
	return n
}

func (f figure) String() string {
	text := fmt.Sprintf("%d orders, %.0f a second, a session waited in %d", f.orders,
		float64(f.orders)/f.took.Seconds(), f.waited)
	for _, o := range slices.Sorted(maps.Keys(f.outcomes)) {
		text += fmt.Sprintf(", %d %s", f.outcomes[o], o)
	}
	return text
}

const runHead = "| database | mode | orders | a second | in which a session waited | steps done | refused by a rule |" +
	" by a constraint | serialization failure | deadlock | busy | written for another state of the seal |\n" +
	"|---|---|---|---|---|---|---|---|---|---|---|---|\n"

// recordRun replaces the figures of an earlier run of a mode. All orders of the mode must have run.
func recordRun(t *testing.T, f figure) {
	t.Helper()
	was, _, _ := sectionOf(t, "run")
	text := runHead
	for _, d := range databases {
		for _, m := range d.modes {
			row := fmt.Sprintf("| %s | %s |", d.name, m.name)
			if d.name == f.database && m.name == f.mode {
				text += row + fmt.Sprintf(" %d | %.0f | %d | %d | %d | %d | %d | %d | %d | %d |\n", f.orders,
					float64(f.orders)/f.took.Seconds(), f.waited, f.outcomes[done], f.refused(), f.outcomes[constraint],
					f.outcomes[serialization], f.outcomes[deadlock], f.outcomes[busy], f.outcomes[resealed])
				continue
			}
			for _, line := range strings.SplitAfter(was, "\n") {
				if strings.HasPrefix(line, row) {
					text += line
				}
			}
		}
	}
	record(t, "run", text)
}

// controlTable shows in how many orders each control was caught.
func controlTable(caught map[string]map[string][]int) string {
	var b strings.Builder
	b.WriteString("| control | in the place of | orders |")
	for _, d := range databases {
		fmt.Fprintf(&b, " %s |", d.name)
	}
	b.WriteString("\n|---|---|---|" + strings.Repeat("---|", len(databases)) + "\n")
	for i, c := range controls {
		sc := newScenario(cast{sessions: c.sessions}, c.rules, "", "")
		fmt.Fprintf(&b, "| %s | %v | %d |", c.name, c.rules, count([]*scenario{sc}))
		for _, d := range databases {
			var in []string
			for _, m := range d.modes {
				in = append(in, fmt.Sprint(caught[d.name][m.name][i]))
			}
			fmt.Fprintf(&b, " %s |", strings.Join(in, ", "))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// counted shows the number of orders of each ruleset on each database.
func counted() string {
	var b strings.Builder
	b.WriteString("| rules |")
	plans := make(map[string]map[string][]*scenario)
	for _, d := range databases {
		fmt.Fprintf(&b, " %s, at each of %d |", d.name, len(d.modes))
		plans[d.name] = d.plan(false)[d.modes[0].name]
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(databases)) + "\n")
	sums := make([]int, len(databases))
	for _, r := range rulesets(sqlfence.Postgres) {
		fmt.Fprintf(&b, "| %v |", r)
		for i, d := range databases {
			n := count(plans[d.name][r.String()])
			sums[i] += n
			if n == 0 {
				b.WriteString(" refused |")
				continue
			}
			fmt.Fprintf(&b, " %d |", n)
		}
		b.WriteString("\n")
	}
	b.WriteString("| all of them, at all |")
	for i, d := range databases {
		fmt.Fprintf(&b, " %d |", sums[i]*len(d.modes))
	}
	return b.String() + "\n"
}

// record writes a section of the page, between two comments, if the flag for this is set.
func record(t *testing.T, section, text string) {
	t.Helper()
	if !*update {
		return
	}
	was, head, tail := sectionOf(t, section)
	if was != text {
		if err := os.WriteFile(page, []byte(head+text+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// sectionOf returns a section of the page, and the text before and after the section.
func sectionOf(t *testing.T, section string) (text, head, tail string) {
	t.Helper()
	whole, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- begin "+section+" -->\n", "<!-- end "+section+" -->"
	head, rest, ok := strings.Cut(string(whole), begin)
	text, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no section %q", page, section)
	}
	return text, head + begin, end + tail
}

// The page states the number of orders.
func TestPage(t *testing.T) {
	record(t, "counted", counted())
	if text, _, _ := sectionOf(t, "counted"); text != counted() {
		t.Errorf("%s differs from what is counted; run this test with -update-orders\ncounted:\n%s", page, counted())
	}
}
