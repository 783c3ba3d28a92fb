package conformance_test

import (
	"context"
	"database/sql/driver"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/conformance"
)

// The suite is tested on SQLite here, most of it in synctest's bubbles, where deadlines take no time.
// The modules of other drivers test the suite with these drivers.

// harness returns a Harness of SQLite with a driver of the form.
func harness(form conformance.Form) conformance.Harness {
	return conformance.Harness{
		Connector: func(t testing.TB) driver.Connector { return conformance.NewDatabase(t, form) },
		Options:   []sqlfence.Option{sqlfence.WithDialect(sqlfence.SQLite)},
	}
}

// The other tests use the form Full.
func TestDriversOfLesserFormsPass(t *testing.T) {
	for name, form := range map[string]conformance.Form{
		"bare": conformance.Bare, "old": conformance.Old, "contexts": conformance.Contexts, "skips": conformance.Skips, "checks": conformance.Checks,
	} {
		if testing.Short() && form != conformance.Bare { // the form with the fewest interfaces
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := harness(form)
			if form == conformance.Bare {
				h.Skip = map[string]string{"valuers": "sqlfence's connection has ExecerContext where the driver's has nothing like it, so a Valuer is asked once more"}
			}
			synctest.Test(t, func(t *testing.T) {
				for _, r := range conformance.Check(t, h).Results {
					if _, skipped := h.Skip[base(r)]; !skipped && r.Outcome != conformance.Passed {
						t.Errorf("%s: %v: %s", r.Name, r.Outcome, r.Reason)
					}
				}
			})
		})
	}
}

// Run makes a subtest of each check, in the order of the report.
func TestRunReportsAll(t *testing.T) {
	t.Parallel()
	h := harness(conformance.Full)
	h.Skip = map[string]string{"deadline": "it takes its time", "errors/registered": "to see one of two skipped"}
	report := conformance.Run(t, h)
	var names []string
	for _, r := range report.Results {
		want := conformance.Passed
		if base(r) == "deadline" || r.Name == "errors/registered" {
			want = conformance.Skipped
		}
		if r.Outcome != want || r.Explanation == "" {
			t.Errorf("%+v: want %v and an explanation", r, want)
		}
		if name := base(r); len(names) == 0 || names[len(names)-1] != name {
			names = append(names, name)
		}
	}
	if chosen("run") || chosen("skip") {
		t.Skip("some checks were left out: the report isn't compared")
	}
	if got, want := fmt.Sprint(names), fmt.Sprint(conformance.CheckNames()); got != want {
		t.Errorf("the report has %s, want %s", got, want)
	}
	if failed := report.Failed(); failed != nil {
		t.Errorf("failed: %v", failed)
	}
}

// chosen reports whether a flag of go test chooses among subtests.
func chosen(name string) bool { return strings.Contains(flag.Lookup("test."+name).Value.String(), "/") }

const failing = "SQLFENCE_CONFORMANCE_FAILING"

// Run must fail its test if a check fails. A separate process shows the failure.
func TestRunFailsItsTest(t *testing.T) {
	if os.Getenv(failing) != "" {
		h := sabotaged(fault{ping: errSabotage})
		h.Skip = allBut("ping")
		conformance.Run(t, h)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestRunFailsItsTest$", "-test.v")
	cmd.Env = append(os.Environ(), failing+"=1")
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Error("Run with a sabotaged driver passes")
	}
	for _, want := range []string{
		"--- FAIL: TestRunFailsItsTest/transparency/ping", "--- SKIP: TestRunFailsItsTest/transparency/pool", "pool is skipped: not of interest",
		"ping: Ping, of the database", "ping/registered: Ping, of the database", "driver alone: nil", `with sqlfence: "sabotage"`,
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func TestReport(t *testing.T) {
	report := conformance.Report{Results: []conformance.Result{
		{Name: "values", Half: conformance.Transparency, Outcome: conformance.Passed},
		{Name: "values/registered", Half: conformance.Transparency, Outcome: conformance.Failed, Reason: "one\ntwo"},
		{Name: "keys", Half: conformance.Fencing, Outcome: conformance.Skipped, Reason: "no keys"},
		{Name: "none"},
	}}
	const want = `transparency  values                                passed
transparency  values/registered                     failed: one
fencing       keys                                  skipped: no keys
              none                                  unknown
`
	if got := report.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if failed := report.Failed(); len(failed) != 1 || failed[0] != report.Results[1] {
		t.Errorf("failed: %+v", failed)
	}
}

// A recordingT records the failures of a test.
type recordingT struct {
	testing.TB
	errors []string
}

func (*recordingT) Helper() {}
func (t *recordingT) Errorf(format string, a ...any) {
	t.errors = append(t.errors, fmt.Sprintf(format, a...))
}
func (t *recordingT) Fatal(a ...any) {
	t.errors = append(t.errors, fmt.Sprint(a...))
	runtime.Goexit()
}

func TestWrongHarnessFailsTheTest(t *testing.T) {
	unknown := harness(conformance.Full)
	unknown.Skip = allBut()
	unknown.Skip["valeus"] = "a slip of the pen"
	stranger := harness(conformance.Full)
	stranger.Options = nil
	for want, h := range map[string]conformance.Harness{`Skip names "valeus"`: unknown, "WithDialect": stranger} {
		r := &recordingT{TB: t}
		done := make(chan struct{})
		go func() { // Fatal ends it
			defer close(done)
			conformance.Check(r, h)
		}()
		<-done
		if len(r.errors) != 1 || !strings.Contains(r.errors[0], want) {
			t.Errorf("errors %q, want one with %q", r.errors, want)
		}
	}
}

// If the driver can't be set up, each check fails with the driver's error, and Run doesn't fail earlier.
func TestUnusableDatabaseFailsEachCheck(t *testing.T) {
	h := harness(conformance.Full)
	h.Connector = func(t testing.TB) driver.Connector {
		return closedConnector{conformance.NewDatabase(t, conformance.Full)}
	}
	for _, r := range conformance.Check(t, h).Results {
		if r.Outcome != conformance.Failed || !strings.Contains(r.Reason, errSabotage.Error()) {
			t.Errorf("%s: %v: %s", r.Name, r.Outcome, r.Reason)
		}
	}
}

type closedConnector struct{ driver.Connector }

func (closedConnector) Connect(context.Context) (driver.Conn, error) { return nil, errSabotage }
