//go:build linux

package proof

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/test/proof/checks"
	"github.com/sqlfence/sqlfence/test/proof/fence"
	"github.com/sqlfence/sqlfence/test/proof/history"
	"github.com/sqlfence/sqlfence/test/proof/judge"
	"github.com/sqlfence/sqlfence/test/proof/others"
	"github.com/sqlfence/sqlfence/test/proof/report"
	"github.com/sqlfence/sqlfence/test/proof/storm"
)

var (
	program = flag.String("program", "", "the command of a fence to judge, for TestProgram")
	lanes   = flag.Int("lanes", 1, "requests that a process of -program takes at a time")
)

// A fence that doesn't hold must be caught in each run.
func TestControls(t *testing.T) {
	server := storm.Postgres(t)
	for i, f := range others.Controls {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			run := report.Run{Kind: report.Control, Fence: f.Name, What: f.What}
			s := overOther(server.Another(t, fmt.Sprint("control_", i)), inProcess(f.Name, 4), f.Ledger)
			s.Open(t)
			rounds(t, s, &run, judge.New(), harness.Patience) // ends when the fence is caught
			if run.Verdict() != "broken" {
				t.Errorf("not caught: %s: %+v", run.Verdict(), run.Counts)
			}
			save(t, run)
		})
	}
}

// Fences of other projects. A sound fence must hold, which shows that the suite reports no false violations.
func TestFences(t *testing.T) {
	server := storm.Postgres(t)
	for i, f := range others.Adapters {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			run := report.Run{Kind: report.Fence, Fence: f.Name, What: f.What}
			p, service := otherProgram(t, f)
			s := overOther(server.Another(t, fmt.Sprint("fence_", i)), p, f.Ledger)
			if f.Forgets != nil {
				forget := func(*storm.Storm, *rand.Rand) { f.Forgets(service) }
				s.Faults = append(s.Faults, storm.Fault{Kind: "its service has lost its data", Every: time.Second, Do: forget})
			}
			s.Open(t)
			rounds(t, s, &run, judge.New(), othersLength())
			if f.Sound && run.Verdict() != "held" {
				t.Errorf("%s: %s: %+v", run.Verdict(), run.First, run.Counts)
			}
			save(t, run)
		})
	}
}

// TestProgram tests the fence in the flag -program, which may be written in any language.
func TestProgram(t *testing.T) {
	if *program == "" {
		t.Skip("-program isn't set")
	}
	run := report.Run{Kind: report.Fence, Fence: *program}
	p := fence.Program{Name: *program, Command: strings.Fields(*program), Lanes: *lanes}
	server := storm.Postgres(t)
	keeps(t, checks.New(t, server.Another(t, "checks"), p, history.Fenced(false), "fenced", "").Run(t), false)
	if *length == 0 {
		return
	}
	s := overOther(server, p, false)
	s.Open(t)
	rounds(t, s, &run, judge.New(), *length)
	if run.Verdict() != "held" {
		t.Errorf("%s: %s: %+v", run.Verdict(), run.First, run.Counts)
	}
}

// overOther returns a storm on another project's fence.
func overOther(db *storm.Target, p fence.Program, ledger bool) *storm.Storm {
	return &storm.Storm{
		Target: db, Program: p, Processes: 3, Tables: history.Fenced(ledger), Ledger: ledgerOf(ledger), Round: 2 * time.Second,
		Mix: storm.Locked, Faults: storm.Processes(1), Seed: *seed, TTL: 60 * time.Millisecond,
	}
}

// othersLength is the length of a storm on a fence, unless the fence is caught earlier.
func othersLength() time.Duration {
	if testing.Short() {
		return 3 * time.Second
	}
	return max(10*time.Second, *length/60)
}

// TestDocs compares docs/data/proof.md with the saved runs, or writes the page with -write.
func TestDocs(t *testing.T) {
	if *docs != "" {
		if err := report.Write(*docs); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := report.Page("../../docs")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile("../../docs/data/proof.md"); err != nil || string(got) != want {
		t.Errorf("docs/data/proof.md isn't what its runs and its texts make of it (%v); run go test . -run TestDocs -write ../../docs", err)
	}
}
