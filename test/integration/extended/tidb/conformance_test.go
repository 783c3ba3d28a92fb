package tidb_test

import (
	"database/sql/driver"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence/conformance"
)

// worded are checks whose errors differ in wording or number on a registered table: a value out of range is found in an
// expression instead of a constant, and a syntax error quotes the guarded statement.
var worded = []string{"values/registered", "named arguments/registered"}

// The conformance suite passes, except for the wording of some errors and the number of calls under Ledger.
func TestConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("a minute")
	}
	report := conformance.Check(t, conformance.Harness{Connector: func(t testing.TB) driver.Connector {
		t.Helper()
		cfg, err := mysql.ParseDSN(empty(t))
		if err != nil {
			t.Fatal(err)
		}
		c, err := mysql.NewConnector(cfg)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}})
	outcomes := map[conformance.Outcome]int{}
	for _, r := range report.Results {
		outcomes[r.Outcome]++
		switch {
		case r.Outcome != conformance.Failed:
		case r.Name == "round trips" && !strings.Contains(r.Reason, "fence,"):
			// Ledger sends queries before the statement
		case slices.Contains(worded, r.Name):
			for line := range strings.SplitSeq(r.Reason, "\n") {
				_, fenced, found := strings.Cut(line, "with sqlfence, books registered: ")
				if found && !strings.HasPrefix(fenced, `"Error `) {
					t.Errorf("%s: %s\n%s", r.Name, r.Explanation, r.Reason)
				}
			}
		default:
			t.Errorf("%s: %s\n%s", r.Name, r.Explanation, r.Reason)
		}
	}
	t.Logf("%v", outcomes)
	if outcomes[conformance.Passed] < 3*outcomes[conformance.Failed] {
		t.Error("too little was checked")
	}
}
