//go:build linux

package proof

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/test/proof/history"
	"github.com/sqlfence/sqlfence/test/proof/judge"
	"github.com/sqlfence/sqlfence/test/proof/report"
	"github.com/sqlfence/sqlfence/test/proof/storm"
)

// sqlfence's promises must hold under every fault.
func TestStorm(t *testing.T) {
	for i, name := range []string{"postgres", "mariadb", "sqlite", "pgbouncer", "synchronous standby", "stepping clock", "full disk", "galera"} {
		t.Run(name, func(t *testing.T) {
			wanted(t, name)
			if i > 2 && testing.Short() || name == "full disk" && *only == "" { // an interrupted run leaves its disk
				t.Skip("runs if it's asked for")
			}
			db := storm.Databases[name](t)
			run := report.Run{Kind: report.Storm, Fence: "sqlfence"}
			s := over(db, "sqlfence")
			s.Seed = *seed*8 + uint64(i)
			s.Open(t)
			rounds(t, s, &run, judge.New(), share(6))
			if run.Verdict() != "held" {
				t.Errorf("%s: %s: %+v", run.Verdict(), run.First, run.Counts)
			}
			save(t, run)
		})
	}
}

// over returns a storm that runs sqlfence on a database.
func over(db *storm.Target, program string) *storm.Storm {
	chosen := slices.DeleteFunc(slices.Clone(db.Tables), func(t history.Table) bool { return !listed(*tables, t.Name) })
	return &storm.Storm{
		Target: db, Program: inProcess(program, 6), Processes: 4, Tables: chosen, Ledger: history.Own,
		Mix: storm.Everything, Faults: storm.Faults(db, faultRate()), Seed: *seed, TTL: db.TTL, Round: 30 * time.Second,
	}
}

// The same storm must catch sqlfence in Observe mode, where the guards refuse nothing.
func TestStormWithoutGuards(t *testing.T) {
	for _, name := range []string{"postgres", "mariadb", "sqlite", "galera"} {
		t.Run(name, func(t *testing.T) {
			wanted(t, name)
			if testing.Short() && name != "sqlite" {
				t.Skip("needs a server of its own")
			}
			run := report.Run{Kind: report.Control, Fence: observed + ", " + name, What: "the guards of the storm refuse nothing"}
			s := over(storm.Databases[name](t), observed)
			s.Round = 5 * time.Second
			s.Open(t)
			j := judge.New()
			for began := time.Now(); !caught(run, s.Tables) && time.Since(began) < harness.Patience; {
				r := s.Run(s.Round)
				run.Add(j.Check(r.History, time.Second), r.Faults, r.Took)
				run.Database, run.Server, run.Seed = name, s.Target.Version(t), *seed
			}
			if !caught(run, s.Tables) {
				t.Errorf("not caught: %v: %+v", run.Broken, run.Counts)
			}
			t.Log(run.Broken, run.Counts)
			save(t, run)
		})
	}
}

// caught reports whether each promise that the guards of these tables keep was found broken.
func caught(run report.Run, tables []history.Table) bool {
	ledgers := history.Find(tables, "ledgered") != nil
	for _, promise := range []string{judge.Falls, judge.Newest, judge.Claims, judge.Once, judge.Serials, judge.Edits, judge.Ordered} {
		if run.Broken[promise] == 0 && (promise != judge.Newest || ledgers) {
			return false
		}
	}
	return true
}

// rounds runs a storm until its time is over or a promise is broken. On a busy machine it continues until some
// operations have overlapped.
func rounds(t *testing.T, s *storm.Storm, run *report.Run, j *judge.Judge, length time.Duration) {
	t.Helper()
	run.Database, run.Server, run.Seed = s.Target.Database, s.Target.Version(t), *seed
	end := time.Now().Add(length)
	left := func() time.Duration { return time.Until(end) }
	for len(run.Broken) == 0 && (left() > 0 || run.Verdict() == "unknown" && left() > -harness.Patience) {
		r := s.Run(min(max(left(), 2*time.Second), s.Round))
		if run.Rounds == 0 && run.Kind == report.Storm {
			run.Planted = planted(t, r.History)
		}
		v := j.Check(r.History, 5*time.Second)
		run.Add(v, r.Faults, r.Took)
		t.Logf("%v: %+v; faults %v", r.Took.Round(time.Second), v.Counts, r.Faults)
		describe(t, r, v)
	}
}

// describe logs odd errors and violations, and saves a picture of each history that no order of operations explains.
func describe(t *testing.T, r storm.Round, v judge.Verdict) {
	t.Helper()
	for text, n := range r.Odd {
		t.Logf("%d times: %.2000s", n, text)
	}
	for text, n := range r.Wrong {
		t.Errorf("%d times: %.2000s", n, text)
	}
	for i, violation := range v.Violations {
		if i < 3 {
			t.Log(violation)
		}
	}
	for name, page := range v.Pictures {
		file := filepath.Join(os.TempDir(), "proof-"+strings.ReplaceAll(name, "/", "-")+".html")
		if err := os.WriteFile(file, page, 0o644); err != nil {
			t.Error(err)
		}
		t.Logf("a picture of %s is in %s", name, file)
	}
}

// planted inserts each possible violation into a copy of the history. The judge must find each of them.
func planted(t *testing.T, h *history.History) map[string]bool {
	t.Helper()
	found := make(map[string]bool)
	for _, p := range judge.Plants {
		c, ok := p.Into(h)
		if !ok {
			t.Logf("no place for: %s", p.Name)
			continue
		}
		if found[p.Name] = len(judge.New().Check(c, harness.Patience).Violations) > 0; !found[p.Name] {
			t.Errorf("not found in the history: %s", p.Name)
		}
	}
	return found
}

// faultRate returns a rate at which even a short storm has each kind of fault.
func faultRate() float64 {
	if testing.Short() {
		return 1
	}
	return *rate
}

// share returns the length of each of n storms.
func share(n int) time.Duration {
	if testing.Short() {
		return 8 * time.Second
	}
	return *length / time.Duration(n)
}

// save adds the run to the results for docs/data/proof.md.
func save(t *testing.T, run report.Run) {
	t.Helper()
	saving.Lock()
	defer saving.Unlock()
	run.Date = time.Now().UTC().Format(time.DateOnly)
	if *docs == "" {
		return
	}
	if err := report.Save(*docs, run); err != nil {
		t.Error(err)
	}
	if err := report.Write(*docs); err != nil {
		t.Error(err)
	}
}

var saving sync.Mutex

// wanted skips the test unless the flag -databases is empty or names the database.
func wanted(t *testing.T, name string) {
	t.Helper()
	if !listed(*only, name) {
		t.Skip("not asked for")
	}
}

// listed reports whether the value of a flag is empty or has the name among its commas.
func listed(flag, name string) bool {
	return flag == "" || strings.Contains(fmt.Sprint(",", flag, ","), ","+name+",")
}
