//go:build linux

package proof

import (
	"fmt"
	"sync"
	"testing"

	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/test/proof/checks"
	"github.com/sqlfence/sqlfence/test/proof/fence"
	"github.com/sqlfence/sqlfence/test/proof/history"
	"github.com/sqlfence/sqlfence/test/proof/others"
	"github.com/sqlfence/sqlfence/test/proof/report"
	"github.com/sqlfence/sqlfence/test/proof/storm"
)

// sqlfence passes all checks. Every sound fence passes the checks of fences. Each check is failed by some fence.
func TestChecks(t *testing.T) {
	server := storm.Postgres(t)
	var mu sync.Mutex
	failed := make(map[string]bool)
	var ran harness.Subtests
	t.Run("of", func(t *testing.T) {
		t.Run("sqlfence", func(t *testing.T) {
			t.Parallel()
			db := server.Another(t, "checks_sqlfence")
			lab := checks.New(t, db, inProcess("sqlfence", 4), db.Tables, "leased", history.Own)
			keeps(t, check(t, lab, "sqlfence", "leases, a row fence and a ledger"), true)
		})
		t.Run("from Python", func(t *testing.T) {
			t.Parallel()
			db := server.Another(t, "checks_python")
			p := fromPython(t, db)
			keeps(t, check(t, checks.New(t, db, p, history.Fenced(true), "fenced", history.Own), p.Name, sealedLeases), true)
		})
		for i, f := range others.All() {
			if f.Forgets != nil || testing.Short() && f.Name != "check, then write" {
				continue // such a fence differs from another one of the list only by the data that its service loses
			}
			ran.Run(t, f.Name, func(t *testing.T) {
				t.Parallel()
				p, _ := otherProgram(t, f)
				lab := checks.New(t, server.Another(t, fmt.Sprint("checks_", i)), p, history.Fenced(f.Ledger), "fenced", ledgerOf(f.Ledger))
				found := check(t, lab, f.Name, f.What)
				switch {
				case f.Sound:
					keeps(t, found, false)
				case len(found) == 0:
					t.Error("it keeps all checks")
				}
				mu.Lock()
				defer mu.Unlock()
				for name, seen := range found {
					failed[name] = failed[name] || !seen.Without
				}
			})
		}
	})
	if testing.Short() {
		t.Skip("one fence has run: it doesn't fail all checks")
	}
	ran.NeedAll(t)
	for _, c := range checks.List {
		if !failed[c.Name] && !t.Failed() {
			t.Errorf("no fence fails it: %s", c.Name)
		}
	}
}

// keeps fails the test if a required check has failed. If all is set, it includes the checks that a fence may fail.
func keeps(t *testing.T, found map[string]*checks.Seen, all bool) {
	t.Helper()
	for _, c := range checks.List {
		if seen := found[c.Name]; seen != nil && (all || !c.More) {
			t.Errorf("%s: %v", c.Name, seen)
		}
	}
}

// check runs all checks on a fence, and saves the failures for docs/data/proof.md.
func check(t *testing.T, lab *checks.Lab, name, what string) (found map[string]*checks.Seen) {
	t.Helper()
	found = lab.Run(t)
	run := report.Run{Kind: report.Checks, Fence: name, What: what, Database: "postgres"}
	for _, c := range checks.List {
		result := report.Check{Name: c.Name, More: c.More}
		if seen := found[c.Name]; seen != nil {
			result.Seen, result.Without = seen.Text, seen.Without
			t.Logf("it isn't so that %s: %s", c.Name, seen.Text)
		}
		run.Checks = append(run.Checks, result)
	}
	save(t, run)
	return found
}

// otherProgram returns the program of a fence, and starts the service that the fence needs.
func otherProgram(t *testing.T, f others.Fence) (p fence.Program, service string) {
	t.Helper()
	p = inProcess(f.Name, 4)
	if f.Needs != nil {
		service = f.Needs(t)
		p.Env = append(p.Env, others.Service+"="+service)
	}
	return p, service
}

// ledgerOf returns the name of the table in which a fence stores its tokens, or "" if the fence has no such table.
func ledgerOf(ledger bool) string {
	if ledger {
		return "locks"
	}
	return ""
}
