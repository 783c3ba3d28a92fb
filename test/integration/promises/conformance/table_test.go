package conformance_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/conformance"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// rows are the lines of the page's table, each with the checks that it summarizes. Each check belongs to one line.
var rows = []struct {
	title  string
	checks []string
}{
	{"Values, Valuers, scanning", []string{"values", "valuers", "scanning"}},
	{"Named arguments, wrong counts", []string{"named arguments", "argument counts"}},
	{"Column types", []string{"column types"}},
	{"Several result sets, empty statements", []string{"result sets", "empty statements"}},
	{"Optional interfaces", []string{"connection interfaces", "rows interfaces"}},
	{"`Conn.Raw`, closing the connector", []string{"raw connection", "connector closed"}},
	{"Results, rows closed early", []string{"results", "rows closed early"}},
	{"Errors and their types", []string{"errors", "errors in transactions", "use after close"}},
	{"Isolation levels, end of transactions", []string{"isolation levels", "end of transactions"}},
	{"Cancelling, deadlines", []string{"cancelled before", "cancelled transaction", "cancelled rows", "deadline"}},
	{"Prepared statements", []string{"prepared statements"}},
	{"Pool, ping, many goroutines", []string{"pool", "ping", "many goroutines"}},
	{"G1, G2: stale writes refused, others pass", []string{"stale writes", "current writes", "unissued tokens", "token at execution", "paused writer", "competing writers"}},
	{"G3: all or nothing", []string{"all or nothing"}},
	{"G4: fail closed", []string{"fail closed"}},
	{"G5: no token, no write", []string{"no token", "bypass and observe", "observer"}},
	{"G6: one round trip", []string{"round trips"}},
	{"G7: transparent otherwise", []string{"other tables", "driver's error", "contexts", "nothing leaks"}},
	{"SingleUse, Key, Claim, ClaimOf, unknown names",
		[]string{"single use", "keys", "claims", "claims of another table", "unknown name"}},
}

// The page docs/data/compatibility.md has the results of TestConformance, if all targets have passed all checks.
// TestConformance can't compare the page, because the parallel subtests run after its code.
func TestPageMatchesReports(t *testing.T) {
	made := 0
	for _, r := range reports {
		made = max(made, len(r.Results))
	}
	for _, target := range targets {
		if n := len(reports[target.name].Results); n == 0 || n < made {
			t.Skipf("%s hasn't made and passed all checks: the page isn't compared", target.name)
		}
	}
	known := map[string]bool{}
	for _, row := range rows {
		for _, check := range row.checks {
			known[check] = true
		}
	}
	made = 0
	for _, r := range reports[targets[0].name].Results {
		name, _, registered := strings.Cut(r.Name, "/")
		if !known[name] {
			t.Errorf("the table has no line for the check %q", name)
		}
		if !registered {
			made++
		}
	}
	if made < len(known) {
		t.Skipf("%d of %d checks were made: the page isn't compared", made, len(known))
	}
	harness.InCompatibility(t, "drivers", driversTable(t, reports))
}

func driversTable(t *testing.T, reports map[string]conformance.Report) string {
	var b strings.Builder
	b.WriteString("|  |")
	for _, target := range targets {
		fmt.Fprintf(&b, " %s |", target.name)
	}
	b.WriteString("\n|---|" + strings.Repeat(":-:|", len(targets)) + "\n")
	var notes []string
	var lines strings.Builder
	for _, row := range rows {
		fmt.Fprintf(&lines, "| %s |", row.title)
		for _, target := range targets {
			fmt.Fprintf(&lines, " %s |", cell(reports[target.name], row.checks, &notes))
		}
		lines.WriteByte('\n')
	}
	b.WriteString(harness.JoinLines(lines.String()))
	b.WriteString("\n✓ all checks pass, – not applicable. ")
	b.WriteString("What stands before G1 is compared with the driver alone, with and without a registered table.\n")
	for i, note := range notes {
		fmt.Fprintf(&b, "\n%d. %s", i+1, note)
	}
	if len(notes) > 0 {
		b.WriteByte('\n')
	}
	b.WriteString("\nTried with")
	var modules []string
	for _, target := range targets {
		if target.module != "" && !slices.Contains(modules, target.module) {
			modules = append(modules, target.module)
			if len(modules) > 1 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, " %s %s", target.module, harness.ModuleVersion(t, target.module))
		}
	}
	b.WriteString(". The unknown drivers are pgx and mattn's, hidden from sqlfence and opened with `WithDialect`.\n")
	return b.String()
}

// cell summarizes the results of some checks, and adds a note for each that was skipped.
func cell(r conformance.Report, checks []string, notes *[]string) string {
	var marks []string
	passed := 0
	for _, result := range r.Results {
		name, _, _ := strings.Cut(result.Name, "/")
		switch {
		case !slices.Contains(checks, name):
		case result.Outcome == conformance.Passed:
			passed++
		case result.Outcome == conformance.Failed:
			return "✗"
		default:
			note := fmt.Sprintf("Not checked: %s: %s.", result.Name, result.Reason)
			if strings.HasPrefix(result.Reason, "sqlfence doesn't guard") { // one note for many checks
				note = "Not checked with a registered table: " + result.Reason + "."
			}
			if !slices.Contains(*notes, note) {
				*notes = append(*notes, note)
			}
			if n := fmt.Sprint(slices.Index(*notes, note) + 1); !slices.Contains(marks, n) {
				marks = append(marks, n)
			}
		}
	}
	mark := "✓"
	if passed == 0 {
		mark = "–"
	}
	if len(marks) > 0 {
		mark += "<sup>" + strings.Join(marks, ",") + "</sup>"
	}
	return mark
}
