package report

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/test/proof/judge"
)

//go:embed page.template
var page string

// Write writes data/proof.md of all runs into the folder of the docs.
func Write(docs string) error {
	text, err := Page(docs)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(docs, "data", "proof.md"), []byte(text), 0o644)
}

// Page returns what Write writes.
func Page(docs string) (string, error) {
	runs, err := Load(docs)
	if err != nil {
		return "", err
	}
	storms := of(runs, Storm)
	return strings.NewReplacer(
		"{{summary}}", summary(storms), "{{storms}}", stormTable(storms), "{{faults}}", faultTable(storms),
		"{{controls}}", fenceTable(of(runs, Control)), "{{fences}}", fenceTable(of(runs, Fence)), "{{planted}}", plantedTable(storms),
		"{{checks}}", checkTable(of(runs, Checks)),
	).Replace(page), nil
}

func of(runs []Run, kind string) (list []Run) {
	for _, r := range runs {
		if r.Kind == kind {
			list = append(list, r)
		}
	}
	return list
}

// sum adds runs up.
func sum(runs []Run) (c judge.Counts, faults map[string]int, broken int, seconds float64) {
	faults = make(map[string]int)
	for _, r := range runs {
		c.Add(r.Counts)
		seconds += r.Seconds
		for kind, n := range r.Faults {
			faults[kind] += n
		}
		for _, n := range r.Broken {
			broken += n
		}
	}
	return c, faults, broken, seconds
}

func total(counts map[string]int) (n int) {
	for _, m := range counts {
		n += m
	}
	return n
}

func summary(storms []Run) string {
	if len(storms) == 0 {
		return "No run is recorded yet."
	}
	c, faults, broken, _ := sum(storms)
	text := fmt.Sprintf("So far: %s operations and %s faults, %s writes landed, %s were refused as stale, and %s.",
		count(c.Ops), count(total(faults)), count(c.Landed), count(c.Stale), violations(broken))
	if broken > 0 {
		kept := slices.DeleteFunc(slices.Clone(storms), func(r Run) bool { return len(r.Broken) > 0 })
		c, faults, _, _ := sum(kept)
		text += fmt.Sprintf(" The runs that found nothing have %s operations and %s faults.", count(c.Ops), count(total(faults)))
	}
	return text
}

func violations(n int) string {
	switch n {
	case 0:
		return "no promise was broken"
	case 1:
		return "one promise was broken"
	}
	return count(n) + " promises were broken"
}

// count is a number with commas.
func count(n int) string {
	s := fmt.Sprint(n)
	for at := len(s) - 3; at > 0; at -= 3 {
		s = s[:at] + "," + s[at:]
	}
	return s
}

// A table of Markdown.
type table struct{ strings.Builder }

func newTable(heads ...string) *table {
	t := new(table)
	t.row(heads...)
	t.row(slices.Repeat([]string{"---"}, len(heads))...)
	return t
}

func (t *table) row(cells ...string) { t.WriteString("| " + strings.Join(cells, " | ") + " |\n") }

func (t *table) String() string { return strings.TrimSuffix(t.Builder.String(), "\n") }

// stormTable has a line for each database and server, with the runs on it.
func stormTable(storms []Run) string {
	t := newTable("database", "runs", "seeds", "hours", "operations", "a second", "faults", "landed", "refused as stale",
		"no outcome (had landed)", "takeovers", "held transactions", "broken")
	servers := make(map[string][]Run)
	for _, r := range storms {
		servers[r.Server] = append(servers[r.Server], r)
	}
	for _, server := range slices.Sorted(maps.Keys(servers)) {
		runs := servers[server]
		c, faults, broken, seconds := sum(runs)
		t.row(server, dates(runs), seeds(runs), fmt.Sprintf("%.1f", seconds/3600), count(c.Ops), count(int(float64(c.Ops)/max(seconds, 1))),
			count(total(faults)), count(c.Landed), count(c.Stale), fmt.Sprintf("%s (%s)", count(c.Unknown), count(c.UnknownIn)),
			count(c.Takeovers), count(c.Holds), count(broken))
	}
	return t.String()
}

func dates(runs []Run) string {
	first, last := runs[0].Date, runs[len(runs)-1].Date
	if first == last {
		return fmt.Sprintf("%d, %s", len(runs), first)
	}
	return fmt.Sprintf("%d, %s to %s", len(runs), first, last)
}

func seeds(runs []Run) string {
	var list []uint64
	for _, r := range runs {
		list = append(list, r.Seed)
	}
	slices.Sort(list)
	list = slices.Compact(list)
	if len(list) > 3 {
		return fmt.Sprintf("%d of them, %d to %d", len(list), list[0], list[len(list)-1])
	}
	return strings.Trim(fmt.Sprint(list), "[]")
}

func faultTable(storms []Run) string {
	_, faults, _, _ := sum(storms)
	t := newTable("fault", "times")
	for _, kind := range slices.SortedFunc(maps.Keys(faults), func(a, b string) int { return cmp.Compare(faults[b], faults[a]) }) {
		t.row(kind, count(faults[kind]))
	}
	return t.String()
}

// fenceTable has a line for each fence, with all its runs.
func fenceTable(runs []Run) string {
	t := newTable("fence", "how it fences", "runs", "operations", "faults", "verdict", "what was found first")
	byFence := make(map[string][]Run)
	var names []string
	for _, r := range runs {
		if byFence[r.Fence] == nil {
			names = append(names, r.Fence)
		}
		byFence[r.Fence] = append(byFence[r.Fence], r)
	}
	for _, name := range names {
		runs := byFence[name]
		c, faults, _, _ := sum(runs)
		verdict, first := verdicts(runs)
		t.row(name, runs[len(runs)-1].What, count(len(runs)), count(c.Ops), count(total(faults)), verdict, strings.ReplaceAll(first, "|", "\\|"))
	}
	return t.String()
}

// verdicts returns the verdict of all runs, and the first violation of the first broken run.
func verdicts(runs []Run) (verdict, first string) {
	broken := 0
	for _, r := range runs {
		switch {
		case r.Verdict() != "broken":
			verdict = cmp.Or(verdict, r.Verdict())
		case broken == 0:
			first = r.First
			fallthrough
		default:
			broken++
		}
	}
	switch broken {
	case 0:
		return verdict, ""
	case len(runs):
		return "broken", first
	}
	return fmt.Sprintf("broken in %d", broken), first
}

func plantedTable(storms []Run) string {
	found, times := make(map[string]int), make(map[string]int)
	for _, r := range storms {
		for name, ok := range r.Planted {
			times[name]++
			if ok {
				found[name]++
			}
		}
	}
	t := newTable("planted", "times", "found")
	for _, name := range slices.Sorted(maps.Keys(times)) {
		t.row(name, count(times[name]), count(found[name]))
	}
	return t.String()
}

// checkTable has a line for each check of the newest run, with the fences that don't keep it, by the last run of each.
// A run that is older than a check doesn't count for the check.
func checkTable(runs []Run) string {
	last := make(map[string]Run)
	for _, r := range runs {
		last[r.Fence] = r
	}
	t := newTable("a fence has to hold", "kept by", "not kept by")
	if len(runs) == 0 {
		return t.String()
	}
	newest := runs[len(runs)-1].Checks
	for _, c := range newest {
		kept, not := 0, []string(nil)
		for _, name := range slices.Sorted(maps.Keys(last)) {
			checks := last[name].Checks
			i := slices.IndexFunc(checks, func(its Check) bool { return its.Name == c.Name })
			switch {
			case i < 0:
			case checks[i].Seen == "":
				kept++
			case !checks[i].Without:
				not = append(not, name)
			}
		}
		if c.More {
			c.Name = "*" + c.Name + "*"
		}
		t.row(c.Name, fmt.Sprint(kept), strings.Join(not, "; "))
	}
	return t.String()
}
