//go:build linux

package proof

import (
	"testing"
	"time"

	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/test/proof/history"
	"github.com/sqlfence/sqlfence/test/proof/judge"
	"github.com/sqlfence/sqlfence/test/proof/others"
	"github.com/sqlfence/sqlfence/test/proof/report"
	"github.com/sqlfence/sqlfence/test/proof/storm"
)

// A standby that has missed the last tokens is promoted. sqlfence's tokens still increase, because they include the
// timeline. A plain counter issues tokens again, and must be caught.
func TestFailover(t *testing.T) {
	t.Run("sqlfence", func(t *testing.T) {
		t.Parallel()
		run := report.Run{Kind: report.Fence, Fence: "sqlfence, asynchronous failover", What: "the timeline is the upper part of a token"}
		pair := storm.Postgreses(t)
		s := &storm.Storm{
			Target: pair.Target, Program: inProcess("sqlfence", 4), Processes: 3, Tables: pair.Tables, Ledger: history.Own,
			Mix: storm.Everything, Seed: *seed, TTL: 100 * time.Millisecond,
		}
		s.Open(t)
		j := judge.New()
		for began := time.Now(); run.Rounds == 0 || run.Verdict() == "unknown" && time.Since(began) < harness.Patience; {
			failOver(t, s, pair, j, &run)
		}
		if run.Verdict() != "held" {
			t.Errorf("%s: %s: %+v", run.Verdict(), run.First, run.Counts)
		}
		save(t, run)
	})
	t.Run("counter", func(t *testing.T) {
		t.Parallel()
		f, _ := others.Find("row, compared")
		run := report.Run{Kind: report.Control, Fence: "asynchronous failover without the timeline", What: f.What + "; the counter is the database's alone"}
		pair := storm.Postgreses(t)
		s := overOther(pair.Target, inProcess(f.Name, 4), false)
		s.Faults = nil
		s.Open(t)
		j := judge.New()
		for began := time.Now(); len(run.Broken) == 0 && time.Since(began) < harness.Patience; {
			failOver(t, s, pair, j, &run)
		}
		if run.Verdict() != "broken" {
			t.Errorf("not caught: %s: %+v", run.Verdict(), run.Counts)
		}
		save(t, run)
	})
}

// failOver runs a storm while a standby doesn't replicate, promotes the standby, and continues the storm on the
// standby.
func failOver(t *testing.T, s *storm.Storm, pair *storm.Pair, j *judge.Judge, run *report.Run) {
	t.Helper()
	run.Database, run.Server, run.Seed = s.Target.Database, s.Target.Version(t), *seed
	for step, do := range []func(){pair.Follow, pair.CutOff, pair.Promote} {
		do()
		r := s.Run(time.Second)
		if step == 2 {
			r.Faults["standby promoted that had missed commits"]++
			s.Rewind()
		}
		v := j.Tokens(r.History)
		run.Add(v, r.Faults, r.Took)
		describe(t, r, v)
	}
}
