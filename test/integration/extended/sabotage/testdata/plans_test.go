package rewrite

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/rewrite/internal/read"
	"github.com/sqlfence/sqlfence/rewrite/internal/rules"
)

// An input is a statement to plan.
type input struct {
	d databases.Dialect
	r rewriterOf
	s string
}

func (in input) String() string { return fmt.Sprintf("%v, %s: %s", in.d, in.r.named, in.s) }

// inputsOfSabotage returns every sample for every rewriter of the golden tests, and mutants of the samples.
func inputsOfSabotage(t *testing.T) (all []input) {
	for _, d := range guardedDialects(t) {
		names := rulesetsOf(t, d)
		slices.Sort(names)
		var rewriters []rewriterOf
		for _, rules := range names {
			rewriters = append(rewriters, rewriterOf{newRewriter(t, d, rules), rules})
		}
		for _, s := range corpus(t, d) {
			for _, r := range rewriters {
				all = append(all, input{d, r, s.sql})
			}
		}
		const mutants = 12_000 // of each dialect
		m := newMutator(t, d, 1)
		var room []string
		var sql string
		for range mutants {
			sql, room = m.text(room)
			all = append(all, input{d, rewriters[m.IntN(len(rewriters))], sql})
		}
	}
	return all
}

// A compared is the outcome of a site, as the program sabotage reads it.
type compared struct {
	N      int
	Change string
	Plans  int
	First  string
}

// changes are the kinds of change of a plan, the least important first. A change to "early" means that the site has an
// effect before the first statement, so that it must be sabotaged from the start of the process.
var changes = []string{"none", "refusal", "closed", "guard", "guarded", "opened"}

// changeOf compares a plan with the plan of the intact reader.
func changeOf(intact, now string) string {
	was, _, _ := strings.Cut(intact, " ")
	is, _, _ := strings.Cut(now, " ")
	switch {
	case intact == now:
		return "none"
	case is == "refuse" && was == "refuse":
		return "refusal"
	case is == "refuse", is == "guard" && was != "refuse" && was != "guard":
		return "closed"
	case is == "guard" && was == "guard":
		return "guard"
	case is == "guard":
		return "guarded"
	}
	return "opened"
}

// TestPlansOfSabotagedReader compares the plans of a sabotaged reader with the plans of the intact reader. It adds a
// line with JSON for each site to the file that SABOTAGE_OUT names. SABOTAGE_SITES has the sites, as in "3 set\n7".
// The keyword after a site's number is the keyword that the site compares with. If TestGolden would fail, the change is
// "golden", and other plans aren't compared.
//
// If SABOTAGE disables a site from the start, the test compares this site only.
func TestPlansOfSabotagedReader(t *testing.T) {
	c := comparer{out: os.Getenv("SABOTAGE_OUT"), inputs: inputsOfSabotage(t)}
	for _, d := range guardedDialects(t) {
		for _, s := range corpus(t, d) {
			c.samples = append(c.samples, input{d, rewriterOf{}, s.sql})
			c.whole = append(c.whole, s)
		}
	}
	file, sites := os.Getenv("SABOTAGE_PLANS"), os.Getenv("SABOTAGE_SITES")
	if n := read.SabotagedSite(); n != 0 {
		text, err := os.ReadFile(file)
		if err == nil {
			var kept [2][]string
			err = json.Unmarshal(text, &kept)
			c.golden, c.plans = kept[0], kept[1]
		}
		if err != nil {
			t.Fatal(err)
		}
		_, keyword, _ := strings.Cut(strings.TrimSpace(sites), " ")
		watch(c.out, n)
		c.report(c.compare(n, keyword, every(c.samples), every(c.inputs)))
		return
	}
	early := rules.TakeSites(read.TakeSites(nil))
	c.golden, c.plans = make([]string, len(c.samples)), make([]string, len(c.inputs))
	var samples, inputs map[int][]int // where each site has an effect
	first := make(map[int]bool)
	for pass := range 2 {
		samples, inputs = make(map[int][]int), make(map[int][]int)
		for i := range c.samples {
			c.golden[i] = c.goldenText(i)
			for _, n := range rules.TakeSites(read.TakeSites(nil)) {
				samples[n] = append(samples[n], i)
				first[n] = first[n] || pass == 0
			}
		}
		for i := range c.inputs {
			c.plans[i] = c.planLine(i)
			for _, n := range rules.TakeSites(read.TakeSites(nil)) {
				inputs[n] = append(inputs[n], i)
				first[n] = first[n] || pass == 0
			}
		}
	}
	for n := range first {
		if samples[n] == nil && inputs[n] == nil { // the reader keeps the outcome
			early = append(early, n)
		}
	}
	text, err := json.Marshal([2][]string{c.golden, c.plans})
	if err == nil {
		err = os.WriteFile(file, text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(sites) {
		number, keyword, _ := strings.Cut(strings.TrimSpace(line), " ")
		var n int
		fmt.Sscan(number, &n)
		if slices.Contains(early, n) {
			c.report(compared{N: n, Change: "early"})
			continue
		}
		stop := watch(c.out, n)
		read.Sabotage(n)
		rules.Sabotage(n)
		c.report(c.compare(n, keyword, samples[n], inputs[n]))
		read.Sabotage(0)
		rules.Sabotage(0)
		stop()
		runtime.GC() // empties the pools, which may hold objects that the sabotaged reader left in disorder
		runtime.GC()
	}
	if i := slices.IndexFunc(every(c.samples), func(i int) bool { return c.goldenText(i) != c.golden[i] }); i >= 0 {
		t.Errorf("an effect remains: %v", c.samples[i])
	}
}

// A comparer compares plans with the plans of the intact reader.
type comparer struct {
	out     string
	samples []input
	whole   []sample
	golden  []string // each sample's text in the golden file, or the failure
	inputs  []input
	plans   []string // as planLine returns them
}

func every(inputs []input) (all []int) {
	for i := range inputs {
		all = append(all, i)
	}
	return all
}

// mayChange returns the inputs, of those in which the site of a keyword has an effect, whose plans are compared: all
// with the keyword, and one in 20 of the others. Without a keyword it returns all inputs.
func mayChange(keyword string, all []input, some []int) (compared []int) {
	for k, i := range some {
		text := strings.ToLower(all[i].s)
		if keyword == "" || k%20 == 0 || strings.Contains(text, keyword) || strings.Contains(text, "u&") {
			compared = append(compared, i)
		}
	}
	return compared
}

func (c *comparer) compare(n int, keyword string, samples, inputs []int) (found compared) {
	for _, i := range mayChange(keyword, c.samples, samples) {
		if c.goldenText(i) != c.golden[i] {
			return compared{N: n, Change: "golden"}
		}
	}
	found = compared{N: n, Change: changes[0]}
	for _, i := range mayChange(keyword, c.inputs, inputs) {
		change := changeOf(c.plans[i], c.planLine(i))
		if change != changes[0] {
			found.Plans++
		}
		if slices.Index(changes, change) > slices.Index(changes, found.Change) {
			found.Change, found.First = change, c.inputs[i].String()
		}
	}
	return found
}

func (c *comparer) planLine(i int) string { return planLine(c.inputs[i].r, c.inputs[i].s) }

// goldenText returns the text of a sample in the golden file.
func (c *comparer) goldenText(i int) (text string) {
	defer func() {
		if failed := recover(); failed != nil {
			text = "a failure"
		}
	}()
	return c.whole[i].golden(panics{}, c.samples[i].d)
}

// panics is a test that panics if it fails.
type panics struct{ testing.TB }

func (panics) Helper()          {}
func (panics) Fatal(all ...any) { panic(fmt.Sprint(all...)) }

// watch ends the process if planning doesn't end, or takes too much memory.
func watch(out string, n int) (stop func()) {
	used := func() time.Duration {
		var u syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	begin, done := used(), make(chan bool)
	go func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Second / 2):
			}
			var m runtime.MemStats
			if runtime.ReadMemStats(&m); used()-begin > 10*time.Second || m.HeapAlloc > 3<<30 {
				(&comparer{out: out}).report(compared{N: n, Change: "endless"})
				os.Exit(1)
			}
		}
	}()
	return func() { close(done) }
}

func (c *comparer) report(found compared) {
	text, err := json.Marshal(found)
	if err != nil {
		panic(err)
	}
	f, err := os.OpenFile(c.out, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	fmt.Fprintf(f, "%s\n", text)
}

// planLine returns the verdict of a plan, a hash of its refusal, and a hash of the guarded SQL with what the caller must
// check.
func planLine(r rewriterOf, sql string) (line string) {
	verdict := guard.Refuse // of PlanFor, if planning panics
	defer func() {
		if recover() != nil {
			line = fmt.Sprint(verdict, " panic -")
		}
	}()
	if !r.rules.Finds(sql) {
		return "pass - -"
	}
	p := r.rules.Read(sql, variantOf(r.named))
	verdict = p.Verdict
	h := fnv.New64a()
	switch p.Verdict {
	case guard.Pass:
		if len(p.Settings) == 0 {
			return "pass - -"
		}
		return fmt.Sprintf("checked - %v", p.Settings)
	case guard.Refuse:
		fmt.Fprint(h, p.Refusal)
		return fmt.Sprintf("refuse %x -", h.Sum64())
	}
	standard, args, err := p.Default()
	fmt.Fprint(h, standard, args, err)
	v := valuesOf(p, r.named)
	rendered, args, err := knowing(p, v).Render(v)
	fmt.Fprint(h, rendered, args, err, p.Settings, p.Tables, p.Targets, p.Inputs, p.Params, p.Serial, p.Locks, p.Tokenless,
		p.Aborts, p.Versioned, p.Returns, p.ReturnsChecks, p.Rows, p.Ignores, p.AssignsTwice, p.ReadsAssigned,
		p.ChecksLimited, p.ChecksLate, p.MultiStatement, p.Unsettles, p.Alone)
	return fmt.Sprintf("guard - %x", h.Sum64())
}
