package dqlite_test

import (
	"database/sql/driver"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/conformance"
)

// queried are the checks that send some writes by Query. sqlfence refuses a write by Query on dqlite, so they may fail.
var queried = []string{"all or nothing", "argument counts", "bypass and observe", "claims", "claims of another table",
	"column types", "errors", "keys", "named arguments", "observer", "round trips", "rows closed early",
	"rows interfaces", "single use", "stale writes", "unissued tokens", "unknown name"}

// The conformance suite passes, except for writes that are sent by Query.
func TestConformance(t *testing.T) {
	c := ownCluster(t)
	report := conformance.Check(t, conformance.Harness{
		Connector: func(t testing.TB) driver.Connector {
			c.revive(t)
			return c.connector(t)
		},
		Skip: map[string]string{
			"values":         "a node ends if it reads a number from a column of the type timestamp",
			"current writes": "a node ends after an Exec with RETURNING",
			"nothing leaks":  "a node ends after an Exec with RETURNING",
			"other tables":   "an Exec with RETURNING is an error of the driver alone",
			"deadline":       "the driver waits for an answer, whatever becomes of the context",
		},
	})
	outcomes := map[conformance.Outcome]int{}
	for _, r := range report.Results {
		outcomes[r.Outcome]++
		if r.Outcome != conformance.Failed {
			continue
		}
		name, _, _ := strings.Cut(r.Name, "/")
		if !slices.Contains(queried, name) {
			t.Errorf("%s: %s\n%s", r.Name, r.Explanation, r.Reason)
		}
		for line := range strings.SplitSeq(r.Reason, "\n") {
			if strings.Contains(line, " by exec") || strings.HasPrefix(line, "exec:") {
				t.Errorf("%s: %s", r.Name, line)
			}
		}
	}
	t.Logf("%v", outcomes)
	if outcomes[conformance.Passed] < 2*outcomes[conformance.Failed] {
		t.Error("too little was checked")
	}
}
