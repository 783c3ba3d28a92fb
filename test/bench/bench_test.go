package main

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence/internal/test/need"
)

// TestMain runs the tests, unless the process was started as a worker or as the etcd server of a benchmark.
func TestMain(m *testing.M) {
	if !helps(os.Args[1:]) {
		os.Exit(m.Run())
	}
}

// TestShort runs every benchmark for which this machine has servers once, so that the benchmarks keep working. Without
// a server it is skipped or fails at the end: see [need.Missing]. It doesn't check the measured figures.
func TestShort(t *testing.T) {
	if testing.Short() {
		t.Skip("starts servers of its own")
	}
	out := t.TempDir()
	temporary := temporaryFolder(t)
	c := config{out: out, short: true, log: t.Output()}
	if err := c.check("", nil); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(temporary)
	if err != nil || len(left) > 0 {
		t.Errorf("left in the temporary folder: %v, %v", left, err)
	}
	var report string
	for _, name := range []string{"benchmarks.md", "data/benchmarks.md"} {
		text, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		report += string(text)
		for _, found := range regexp.MustCompile(`\]\(([^)]*\.svg)\)`).FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(out, filepath.Dir(name), found[1])); err != nil {
				t.Error(err)
			}
		}
	}
	for line := range strings.Lines(report) {
		if strings.Contains(line, "failed on") {
			t.Error(line)
		}
	}
	for _, g := range groups {
		if !strings.Contains(report, "## "+g.title+"\n") {
			t.Errorf("there is no chapter %q", g.title)
		}
	}
	for line := range strings.Lines(report) {
		for _, server := range []string{"PostgreSQL", "Redis", "etcd"} {
			if _, problem, missing := strings.Cut(line, " did not run on "); missing && strings.Contains(problem, ": no "+server) {
				need.Missing(t, strings.ToLower(server), line)
			}
		}
	}
}

// temporaryFolder creates a folder that PostgreSQL's user may enter, because PostgreSQL doesn't run as root. The folder
// of t.TempDir admits only the test's user.
func temporaryFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "bench")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", folder)
	return folder
}

// TestTheRestGoesOn checks that a failing contestant is reported and doesn't disturb the other contestants.
func TestTheRestGoesOn(t *testing.T) {
	fails := func(after int) func(*stage) (work, error) {
		return func(*stage) (work, error) {
			if after == 0 {
				return work{}, errSkip("no such server")
			}
			calls := 0
			return work{call: func(context.Context, int) error {
				if calls++; calls > after {
					return errors.New("broken")
				}
				return nil
			}}, nil
		}
	}
	m := &measurement{contestants: []contestant{
		{name: "skips", start: fails(0)}, {name: "breaks", start: fails(1)}, {name: "runs", start: fails(math.MaxInt)},
	}}
	r := newRunner(config{rounds: 3, slice: time.Microsecond}, &servers{}, "")
	defer r.close()
	found := r.measure(t.Context(), m)
	if err := found.results[0].failed; !skipped(err) {
		t.Errorf("the first failed with %v, want that it was skipped", err)
	}
	if err := found.results[1].failed; err == nil || skipped(err) {
		t.Errorf("the second failed with %v, want that it broke", err)
	}
	if r := found.results[2]; r.failed != nil || !r.ran() {
		t.Errorf("the last has failed with %v, or had no turn", r.failed)
	}
}

// TestTitles checks that titles and names are unique, because workers find a contestant by its measurement's title and
// its name.
func TestTitles(t *testing.T) {
	seen := make(map[string]bool)
	for _, m := range measurements() {
		for _, c := range m.contestants {
			id := m.title() + " / " + c.name
			if seen[id] {
				t.Errorf("there are two of %s", id)
			}
			seen[id] = true
		}
	}
}

// TestGoalsAreMeasured checks that each goal belongs to a measurement. A goal without one would never be reached.
func TestGoalsAreMeasured(t *testing.T) {
	r := &results{}
	for _, m := range measurements() {
		found := &measured{measurement: m}
		for _, c := range m.contestants {
			found.results = append(found.results, result{name: c.name, trips: 1, rounds: []sample{{
				Units: 1, Elapsed: 1, Allocs: 1, Meters: map[string]float64{meterWAL: 1, meterMulti: 1, meterCPU: 1},
			}}})
		}
		r.add(found)
	}
	for _, g := range goals {
		if g.found(view{r, ""}).text == "" {
			t.Errorf("nothing is found for %q", g.aim)
		}
	}
}

// TestRatio checks that a ratio uses only the rounds in which both contestants have run.
func TestRatio(t *testing.T) {
	took := func(each ...time.Duration) *result {
		r := &result{}
		for _, elapsed := range each {
			s := sample{Units: 2, Elapsed: elapsed}
			if elapsed == 0 {
				s.Units = 0
			}
			r.rounds = append(r.rounds, s)
		}
		return r
	}
	one, other := took(30, 10, 0, 40, 90), took(10, 10, 10, 10, 0)
	if got, ok := one.to(other, unitTime); !ok || got != (ratio{2, 3, 3.5}) {
		t.Errorf("got %v, %v; want a median of 3 between 2 and 3.5", got, ok)
	}
	if _, ok := took(0).to(took(1), unitTime); ok {
		t.Error("there is a ratio without a round")
	}
}

func TestSkippedIsNoFailure(t *testing.T) {
	if !skipped(errSkip("no etcd")) || skipped(errors.New("no etcd")) || skipped(nil) {
		t.Error("skipped takes one for the other")
	}
}
