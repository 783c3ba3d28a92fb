// Program sabotage disables each SQL keyword and each condition of the statement reader, one at a time, and records
// which test fails. Run it by
//
//	make sabotage
//
// The reader is the packages rewrite/internal/read and rewrite/internal/rules. The program compiles an instrumented copy
// of their tests once; the number of a site in the environment variable SABOTAGE disables the site. First the program
// compares plans of many statements with the plans of the intact reader, because one process can do that for many
// sites. Then it runs the tests for the sites that no golden sample catches. It writes docs/data/sabotage.md.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A suite is the tests of a package.
type suite struct{ name, folder, run string }

// suites are run in this order, until a test fails.
var suites = []suite{
	{"read", "rewrite/internal/read", "."},
	{"rules", "rewrite/internal/rules", "."},
	{"rewrite", "rewrite", "Golden|Refusals|Docs|Holes|Namesake|Search|Definitions|Own|Ground|Settings"},
}

// perRun is the limit for a run of tests, in seconds of CPU time. The longest run takes about 3 seconds.
const perRun = 20

// plansTest is the added test of the last suite that compares plans.
const plansTest = "TestPlansOfSabotagedReader"

// A result is the outcome of a site.
type result struct {
	Site   string
	Tested bool   `json:",omitempty"` // the tests have run
	Caught string `json:",omitempty"` // the package and test that failed
	Change string `json:",omitempty"` // the gravest change of a plan; empty before the comparison, and if a golden sample catches the site
	Plans  int    `json:",omitempty"` // the number of changed plans
	First  string `json:",omitempty"` // the first statement with the gravest change
}

func main() {
	work := flag.String("work", filepath.Join(os.TempDir(), "sqlfence-sabotage"), "folder for programs and results; an interrupted run continues there")
	only := flag.String("only", "", "run only the sites in files with this substring in their names")
	pageOnly := flag.Bool("page", false, "only write the page, from earlier results")
	flag.Parse()
	if err := run(*work, *only, *pageOnly); err != nil {
		fmt.Fprintln(os.Stderr, "sabotage:", err)
		os.Exit(1)
	}
}

func run(work, only string, pageOnly bool) error {
	if err := os.MkdirAll(work, 0o755); err != nil {
		return err
	}
	sites, skipped, err := build(work, pageOnly)
	if err != nil {
		return err
	}
	r := runner{work: work, results: filepath.Join(work, resultsFile(sites))}
	if r.done, err = readResults(r.results); err != nil {
		return err
	}
	if !pageOnly {
		if err := r.all(sites, only); err != nil {
			return err
		}
	}
	return writePage(sites, skipped, r.done)
}

// A runner runs the compiled tests with sabotaged sites.
type runner struct {
	work    string
	results string            // the file that gets each result at once
	done    map[string]result // by site
	reached []map[int]bool    // for each suite, the sites that have an effect
}

func (r *runner) path(name string) string { return filepath.Join(r.work, name) }

// all compares the plans of every site, and then runs the tests for the sites that the golden files don't catch. Sites
// that change a guard come first.
func (r *runner) all(sites []site, only string) error {
	sites = slices.DeleteFunc(slices.Clone(sites), func(s site) bool {
		return !strings.Contains(s.File, only) || r.done[s.key()].Caught != ""
	})
	compared := func(s site) bool { return r.done[s.key()].Change != "" }
	early, err := r.compare(slices.DeleteFunc(slices.Clone(sites), compared))
	if err != nil {
		return err
	}
	if err := r.reach(); err != nil {
		return err
	}
	for _, c := range append(slices.Clone(changes), change{}) {
		for _, s := range sites {
			was := r.done[s.key()]
			if was.Change != c.name || was.Caught != "" || was.Tested {
				continue
			}
			was.Site, was.Tested = s.key(), true
			if was.Caught, err = r.caught(s); err != nil {
				return err
			}
			if err := r.save(was); err != nil {
				return err
			}
		}
	}
	return r.compareEarly(early)
}

// reach runs the tests without sabotage. They must pass. It records the sites that have an effect there: see added in
// instrument.go.
func (r *runner) reach() error {
	for _, s := range suites {
		record := r.path("record")
		if err := os.RemoveAll(record); err != nil {
			return err
		}
		out, failed, err := r.start(s, perRun, []string{"SABOTAGE_RECORD=" + record}, "-test.run", s.run)
		if err != nil || failed {
			return fmt.Errorf("without sabotage %s fails: %w\n%s", s.name, err, out)
		}
		recorded, err := lines(record)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		sites := make(map[int]bool)
		for _, line := range recorded {
			n, _ := strconv.Atoi(line)
			sites[n] = true
		}
		r.reached = append(r.reached, sites)
	}
	return nil
}

var failure = regexp.MustCompile(`--- FAIL: (\w+)`)

// caught returns the first test that fails if a site is sabotaged, or an empty string. It leaves out the suites in which
// the site has no effect.
func (r *runner) caught(s site) (string, error) {
	for i, tests := range suites {
		if !r.reached[i][s.N] {
			continue
		}
		out, failed, err := r.start(tests, perRun, []string{fmt.Sprint("SABOTAGE=", s.N)}, "-test.run", tests.run)
		if err != nil {
			return "", err
		}
		if m := failure.FindStringSubmatch(out); m != nil {
			return tests.name + " " + m[1], nil
		} else if failed {
			return tests.name + " (time or memory)", nil
		}
	}
	return "", nil
}

// compare compares the plans of sabotaged sites with the plans of the intact reader. One process compares many sites. It
// ends at a site that makes planning endless. It leaves out early sites, which have an effect before the first plan.
func (r *runner) compare(sites []site) (early []site, err error) {
	for len(sites) > 0 {
		found, err := r.comparePlans(sites, 0)
		if err != nil {
			return nil, err
		}
		for _, c := range found {
			i := slices.IndexFunc(sites, func(s site) bool { return s.N == c.N })
			if c.Change == "early" {
				early = append(early, sites[i])
			} else if err := r.add(sites[i], c); err != nil {
				return nil, err
			}
			sites = slices.Delete(sites, i, i+1)
		}
	}
	return early, nil
}

// compareEarly compares the plans of early sites that no test caught, each in a separate process.
func (r *runner) compareEarly(sites []site) error {
	if _, err := r.comparePlans(nil, 0); err != nil { // the tests' samples may have changed since the plans were written
		return err
	}
	for _, s := range sites {
		if r.done[s.key()].Caught != "" {
			continue
		}
		found, err := r.comparePlans([]site{s}, s.N)
		if err != nil {
			return err
		}
		if err := r.add(s, found[0]); err != nil {
			return err
		}
	}
	return nil
}

// add adds the outcome of a comparison to the result of a site.
func (r *runner) add(s site, c comparison) error {
	was := r.done[s.key()]
	was.Site, was.Change, was.Plans, was.First = s.key(), c.Change, c.Plans, c.First
	if c.Change == "golden" {
		was.Change, was.Caught = "", "rewrite TestGolden"
	}
	return r.save(was)
}

// A comparison is a line that the test of plans writes.
type comparison struct {
	N      int
	Change string
	Plans  int
	First  string
}

// comparePlans runs the test of plans for some sites; if n isn't 0, with this site disabled from the start.
func (r *runner) comparePlans(sites []site, n int) (found []comparison, err error) {
	var list strings.Builder
	for _, s := range sites {
		fmt.Fprint(&list, s.N)
		if s.Kind == keyword {
			fmt.Fprint(&list, " ", strings.Trim(s.Text, `"`))
		}
		fmt.Fprintln(&list)
	}
	out := r.path("compared")
	if err := os.RemoveAll(out); err != nil {
		return nil, err
	}
	record := "-"
	if n != 0 {
		record = ""
	}
	text, failed, err := r.start(suites[2], 1800, []string{fmt.Sprint("SABOTAGE=", n), "SABOTAGE_RECORD=" + record,
		"SABOTAGE_OUT=" + out, "SABOTAGE_PLANS=" + r.path("plans"), "SABOTAGE_SITES=" + list.String()},
		"-test.run", "^"+plansTest+"$")
	if err != nil {
		return nil, err
	}
	all, err := lines(out)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, line := range all {
		var c comparison
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			return nil, err
		}
		found = append(found, c)
	}
	switch done := len(found); {
	case done == len(sites):
	case !failed || done == 0 && n == 0 && !strings.Contains(text, "stack overflow"):
		return nil, fmt.Errorf("comparing plans:\n%s", text)
	case done == 0 || found[done-1].Change != "endless": // the process ended at the next site
		found = append(found, comparison{N: sites[done].N, Change: "endless"})
	}
	return found, nil
}

// start runs a test program, for at most so many seconds of CPU time. failed reports that a test failed, or that the
// program ended early.
func (r *runner) start(s suite, seconds int, env []string, args ...string) (out string, failed bool, err error) {
	const most = 30 * time.Minute // other programs may keep the processors busy
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	limits := fmt.Sprintf(`ulimit -t %d; ulimit -v 8000000; exec "$@"`, seconds)
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", limits, "sh", r.path(s.name + ".test"),
		"-test.short", "-test.failfast", "-test.timeout", most.String()}, args...)...)
	cmd.Dir, cmd.Env = s.folder, append(append(os.Environ(), "GOMAXPROCS=1"), env...)
	text, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return string(text), true, nil
	}
	return string(text), false, err
}

// save appends a result to the file.
func (r *runner) save(was result) error {
	r.done[was.Site] = was
	text, err := json.Marshal(was)
	if err != nil {
		return err
	}
	fmt.Printf("%s %s\n", time.Now().Format(time.TimeOnly), text)
	f, err := os.OpenFile(r.results, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	return errors.Join(err, f.Close())
}

// resultsFile returns a name that depends on the reader's sites. If the reader has changed, a run in the same folder starts
// with no results. If only tests have changed, the results stay.
func resultsFile(sites []site) string {
	h := fnv.New32a()
	for _, s := range sites {
		fmt.Fprintln(h, s.key())
	}
	return fmt.Sprintf("results-%08x.json", h.Sum32())
}

// readResults reads the results of an interrupted run. A later line replaces an earlier line of the same site.
func readResults(name string) (map[string]result, error) {
	done := make(map[string]result)
	all, err := lines(name)
	if errors.Is(err, fs.ErrNotExist) {
		return done, nil
	}
	for _, line := range all {
		var was result
		if err := json.Unmarshal([]byte(line), &was); err != nil {
			return nil, err
		}
		done[was.Site] = was
	}
	return done, err
}

func lines(name string) (all []string, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		all = append(all, in.Text())
	}
	return all, in.Err()
}

// sorted returns a map's keys, in order of their counts, the highest first.
func sorted(counts map[string]int) []string {
	keys := slices.Sorted(maps.Keys(counts))
	slices.SortStableFunc(keys, func(a, b string) int { return counts[b] - counts[a] })
	return keys
}
