package conformance

import (
	"database/sql"
	"database/sql/driver"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/core"
)

// A Harness describes a driver to the checks. Only Connector must be set. The checks
// don't change a Harness, and it may be used several times.
type Harness struct {
	// Connector returns a connector of the driver under test, without sqlfence, to a fresh, empty database. The
	// database must allow several connections at once, which wait for each other's locks. Each check calls Connector
	// several times. Connector must remove its databases with t.Cleanup, and report errors to t.
	Connector func(t testing.TB) driver.Connector

	// Options are passed to sqlfence in addition to the check's options, such as [sqlfence.WithDialect] for a driver
	// that sqlfence doesn't know. Options must not register tables.
	Options []sqlfence.Option

	// Skip names checks that the driver can't pass, each with the reason. A name is that of a [Result], such as
	// "values/registered", or only its part before the slash. "ledger" omits the rule Ledger from the checks that also
	// test RowFence. An unknown name fails the test.
	Skip map[string]string

	// Open opens the fenced database; nil means [sqlfence.OpenDB]. Set Open to test sqlfence together with another
	// wrapper.
	Open func(c driver.Connector, opts ...sqlfence.Option) (*sql.DB, error)
}

// Run makes all checks as subtests of t, and returns their results even if some failed. The subtests don't run in
// parallel.
func Run(t *testing.T, h Harness) Report {
	t.Helper()
	var report Report
	each(t, h, func(d sqlfence.Dialect, c check) {
		t.Run(c.half()+"/"+c.name, func(t *testing.T) {
			results := c.run(t, h, d)
			report.Results = append(report.Results, results...)
			skipped := 0
			for _, r := range results {
				switch r.Outcome {
				case Failed:
					t.Errorf("%s: %s\n\t%s", r.Name, r.Explanation, strings.ReplaceAll(r.Reason, "\n", "\n\t"))
				case Skipped:
					t.Logf("%s is skipped: %s", r.Name, r.Reason)
					skipped++
				}
			}
			if skipped == len(results) {
				t.SkipNow()
			}
		})
	})
	return report
}

// Check makes the checks of [Run], but a failed check only appears in the report, and doesn't fail t. t is passed to
// [Harness].Connector: if a database can't be opened, t fails.
func Check(t testing.TB, h Harness) Report {
	t.Helper()
	var report Report
	each(t, h, func(d sqlfence.Dialect, c check) {
		report.Results = append(report.Results, c.run(t, h, d)...)
	})
	return report
}

// each calls do for every check, with the dialect of the harness.
func each(t testing.TB, h Harness, do func(sqlfence.Dialect, check)) {
	t.Helper()
	known := map[string]bool{"ledger": true}
	for _, c := range checks {
		for _, name := range c.results() {
			known[name] = true
		}
		known[c.name] = true
	}
	for name := range h.Skip {
		if !known[name] {
			t.Errorf("Harness.Skip names %q, but there is no such check", name)
		}
	}
	db, err := sqlfence.OpenDB(h.Connector(t), h.Options...)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	d, _ := core.DialectOf(db.Driver())
	if dialectOf(d) == nil {
		t.Fatalf("there are no checks for %v", d)
	}
	for _, c := range checks {
		do(d, c)
	}
}

func (h Harness) open(c driver.Connector, opts ...sqlfence.Option) (*sql.DB, error) {
	opts = append(append([]sqlfence.Option{}, h.Options...), opts...)
	if h.Open != nil {
		return h.Open(c, opts...)
	}
	return sqlfence.OpenDB(c, opts...)
}

// skip reports whether a check is skipped, and returns the reason.
func (h Harness) skip(name string) (string, bool) {
	reason, ok := h.Skip[name]
	if !ok {
		name, _, _ = strings.Cut(name, "/")
		reason, ok = h.Skip[name]
	}
	return reason, ok
}
