package drivers

import (
	"bufio"
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The tests of the guarantees must be able to fail. They are run again on
// sqlfence with a part of the guard taken out, by the go command's -overlay: the
// library has no switch for that, and no file of it is touched. Each of the
// tests named has to fail on each of the bases, and the control has to pass,
// which shows that it isn't the databases that fail.

const (
	negativeControl = "TestDatabasesAreFresh"
	inControlEnv    = "SQLFENCE_IN_NEGATIVE_CONTROL"
)

// all are the bases, postgres those of PostgreSQL.
var (
	all      = []string{"pq", "pgx", "mattn", "modernc"}
	postgres = all[:2]
)

func TestNegativeControl(t *testing.T) {
	t.Parallel() // it mostly builds
	if os.Getenv(inControlEnv) != "" || testing.Short() {
		t.Skip("runs the go command")
	}
	postgresDSN(t)
	dir := strings.TrimSpace(string(goCommand(t, "list", "-f", "{{.Dir}}", "github.com/sqlfence/sqlfence")))
	replaced := func(file string, change func(source string) string) map[string]string {
		t.Helper()
		path := filepath.Join(dir, file)
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		changed := change(string(source))
		if changed == string(source) {
			t.Fatalf("%s has nothing to take out", path)
		}
		with := filepath.Join(t.TempDir(), filepath.Base(file))
		if err := os.WriteFile(with, []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
		return map[string]string{path: with}
	}

	t.Run("no guard", func(t *testing.T) {
		passThrough, err := os.ReadFile("testdata/passthrough_lookup.go.txt")
		if err != nil {
			t.Fatal(err)
		}
		wantFailing(t, replaced("rewrite/lookup.go", func(string) string { return string(passThrough) }), map[string][]string{
			"TestG1RowFenceRefusesAnOlderToken":                   all,
			"TestG1RowFenceWriteThatWaitsWhileANewerOneIsWritten": postgres,
			"TestG1RowFenceUnderLoad":                             all,
			"TestG1SingleUseRefusesAnEqualToken":                  all,
			"TestG2LedgerRefusesAnOlderToken":                     all,
			"TestG2LedgerRefusesAnUnknownName":                    all,
			"TestG2LedgerWriteThatWaitsWhileATokenIsIssued":       postgres,
			"TestG2LedgerHoldsOffTheNextTokenUntilCommit":         postgres, // SQLite's own lock does it, too
			"TestG2LedgerUnderLoad":                               all,
			"TestG3AllOrNothing":                                  all,
			"TestG4FailClosed":                                    all,
			"TestG5NoTokenNoWrite":                                all,
			"TestThousandClientsRowFence":                         all,
			"TestThousandClientsLedger":                           all,
		})
	})

	// A plain subquery on the ledger looks right and passes without concurrency.
	t.Run("no lock on the ledger", func(t *testing.T) {
		without := func(source string) string { return strings.Replace(source, " FOR SHARE OF fencing_tokens", "", 1) }
		wantFailing(t, replaced("rewrite/guard.go", without), map[string][]string{
			"TestG2LedgerWriteThatWaitsWhileATokenIsIssued": postgres,
			"TestG2LedgerHoldsOffTheNextTokenUntilCommit":   postgres,
			"TestG2LedgerUnderLoad":                         postgres,
		})
	})

	t.Run("no upper limit at the ledger", func(t *testing.T) {
		without := func(source string) string {
			source = strings.Replace(source, `w.compare("=", "int8eq"`, `w.compare("<=", "int8le"`, 1)
			return strings.Replace(source, `w.compare("=", ""`, `w.compare("<=", ""`, 1)
		}
		wantFailing(t, replaced("rewrite/guard.go", without), map[string][]string{
			"TestG2LedgerRefusesATokenThatNobodyIssued":                   all,
			"TestG2LedgerRefusesATokenThatNobodyIssuedInEveryKindOfWrite": all,
			"TestG2LedgerOfANameWithoutATokenRefusesAll":                  all,
			"TestG2LedgerWithKeyRefusesATokenThatNobodyIssued":            all,
			"TestRetryNeverRepeatsATokenThatNobodyIssued":                 all,
		})
	})

	t.Run("raised by a cast", func(t *testing.T) {
		without := func(source string) string {
			return strings.Replace(source, `"pg_catalog.int8in(pg_catalog.textout(pg_catalog.concat(", ")))"`, `"(pg_catalog.concat(", ")::bigint)"`, 1)
		}
		wantFailing(t, replaced("rewrite/guard.go", without), map[string][]string{
			"TestGuardsRaiseWhateverCastsTheDatabaseHas": postgres,
		})
	})

	t.Run("own tables not registered", func(t *testing.T) {
		without := func(source string) string {
			return strings.Replace(source, `"fencing_tokens", "fencing_leases", "rowlocks"`, `"no_tokens", "no_leases", "no_locks"`, 1)
		}
		wantFailing(t, replaced("rewrite/own.go", without), map[string][]string{
			"TestG8OwnTablesAreNotWritten":      all,
			"TestG8OwnTablesCanNotBeRegistered": all,
		})
	})

	t.Run("no turn at the ledger", func(t *testing.T) {
		without := func(source string) string {
			return strings.Replace(source, "pg_advisory_xact_lock_shared(", "abs(", 1)
		}
		wantFailing(t, replaced("rewrite/guard.go", without), map[string][]string{
			"TestG2LedgerIssueGetsItsTurn": postgres,
		})
	})

	t.Run("no comparing of serials", func(t *testing.T) {
		without := func(source string) string {
			return strings.Replace(source, "return w.plan.Versioned &&", "return false &&", 1)
		}
		wantFailing(t, replaced("rewrite/serial.go", without), map[string][]string{
			"TestSerialConflict":        all,
			"TestSerialUnderLoad":       all,
			"TestSerialOddStatements":   all,
			"TestSerialColumnNames":     all,
			"TestSerialUpsertOfSeveral": postgres,
			"TestORMSerialCompares":     all,
			"TestORMSerialUnderLoad":    all,
			"TestSerialWriteThatWaits":  postgres,
		})
	})

	t.Run("no look at locks", func(t *testing.T) {
		without := func(source string) string {
			return strings.Replace(source, `w.write("CASE WHEN ", by, " IS NULL`, `w.write("CASE WHEN ", by, " IS NOT NULL OR ", by, " IS NULL`, 1)
		}
		wantFailing(t, replaced("rewrite/lock.go", without), map[string][]string{
			"TestEditLockRefusesOthers":   all,
			"TestEditLockStatements":      all,
			"TestEditLockThatNeverLapses": all,
			"TestEditLockWriteThatWaits":  postgres,
		})
	})

	t.Run("no counting", func(t *testing.T) {
		without := func(source string) string {
			return strings.Replace(source, `w.write(", ", w.rules.serial, " = ")`, "return", 1)
		}
		wantFailing(t, replaced("rewrite/serial.go", without), map[string][]string{
			"TestSerialCounts":    all,
			"TestSerialUnderLoad": all,
			"TestORMSerialCounts": all,
		})
	})

	t.Run("no look at the rows reached", func(t *testing.T) {
		without := func(source string) string { return strings.Replace(source, "case n > 0:", "case n >= 0:", 1) }
		wantFailing(t, replaced("serial.go", without), map[string][]string{
			"TestSerialGone":                     all,
			"TestORMSerialCompares":              all,
			"TestSerialWhereATriggerSkipsTheRow": all,
		})
	})
}

// wantFailing runs the tests with files of the library replaced by others.
func wantFailing(t *testing.T, replace map[string]string, tests map[string][]string) {
	t.Helper()
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	names := slices.Sorted(maps.Keys(tests))
	args := []string{"test", "-json", "-count=1", "-overlay=" + file,
		"-run=^(" + negativeControl + "|" + strings.Join(names, "|") + ")$"}
	if raceEnabled {
		args = append(args, "-race") // what has been built already serves then
	}
	results := outcomes(t, goCommand(t, append(args, ".")...))
	if results[negativeControl] != "pass" {
		t.Errorf("%s: %q, want pass", negativeControl, results[negativeControl])
	}
	for _, name := range names {
		for _, base := range tests[name] {
			if got := results[name+"/"+base]; got != "fail" {
				t.Errorf("%s/%s: %q without the guard, want fail", name, base, got)
			}
		}
	}
}

// goCommand runs the go command in this package and returns what it printed.
// That a test failed is no error here.
func goCommand(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Env = append(os.Environ(), inControlEnv+"=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil && (args[0] != "test" || len(out) == 0) {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return out
}

// outcomes reads the output of go test -json: "pass", "fail" or "skip" by test.
func outcomes(t *testing.T, output []byte) map[string]string {
	t.Helper()
	results := make(map[string]string)
	lines := bufio.NewScanner(bytes.NewReader(output))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct{ Action, Test, Output string }
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("%v: %s", err, lines.Bytes())
		}
		switch {
		case e.Action == "pass" || e.Action == "fail" || e.Action == "skip":
			results[e.Test] = e.Action
		case e.Action == "build-output":
			t.Log(e.Output)
		case strings.HasPrefix(e.Output, "panic:"):
			t.Error(e.Output) // a panic fails every test, and tells nothing
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return results
}
