package negative_test

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

	"github.com/sqlfence/sqlfence/integration/harness"
)

// The tests of the guarantees must be able to fail. They are run again on
// sqlfence with a part of the guard taken out, by the go command's -overlay: the
// library has no switch for that, and no file of it is touched. Each of the
// tests named has to fail on each of the bases, and the control has to pass,
// which shows that it isn't the databases that fail.

// The control is a test of the harness.
const control = "TestDatabasesAreFresh"

// all are the bases, postgres those of PostgreSQL, and servers those where several write at once.
var (
	all      = []string{"pq", "pgx", "mattn", "modernc", "mysql"}
	postgres = all[:2]
	sqlite   = all[2:4]
	servers  = []string{"pq", "pgx", "mysql"}
)

// needed skips a test where the go command isn't to be run, or where there is no server.
func needed(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("runs the go command")
	}
	harness.NeedPostgres(t)
	harness.MySQLDSN(t)
}

// replaced returns an overlay in which a file of the library is changed.
func replaced(t *testing.T, file string, change func(source string) string) map[string]string {
	t.Helper()
	dir := strings.TrimSpace(string(goCommand(t, "list", "-f", "{{.Dir}}", "github.com/sqlfence/sqlfence")))
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

// A form is how guards ask the ledger: by the function, or as a statement.
type form string

const (
	asInstalled form = "SQLFENCE_LEDGER_FUNCTION=1"
	asStatement form = "SQLFENCE_LEDGER_FUNCTION=0"
)

// wantFailing runs tests of this module's packages with files of the library
// replaced by others.
func wantFailing(t *testing.T, packages string, f form, replace map[string]string, tests map[string][]string) {
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
		"-run=^(" + control + "|" + strings.Join(names, "|") + ")$/^(" + strings.Join(all, "|") + ")$"} // once a driver
	if harness.RaceEnabled {
		args = append(args, "-race") // what has been built already serves then
	}
	for _, name := range strings.Fields(packages + " harness") {
		args = append(args, "../"+name)
	}
	results := map[string]string{}
	for range 3 { // where it is chance who comes first, a test may pass once
		maps.Copy(results, outcomes(t, goCommandIn(t, f, args...)))
		if results[control] != "pass" {
			t.Fatalf("%s: %q, want pass", control, results[control])
		}
		for name, bases := range tests {
			tests[name] = slices.DeleteFunc(slices.Clone(bases), func(base string) bool { return results[name+"/"+base] == "fail" })
		}
		if maps.DeleteFunc(tests, func(_ string, bases []string) bool { return len(bases) == 0 }); len(tests) == 0 {
			return
		}
	}
	for name, bases := range tests {
		for _, base := range bases {
			t.Errorf("%s/%s: %q without the guard, want fail", name, base, results[name+"/"+base])
		}
	}
}

// goCommand runs the go command in this folder and returns what it printed.
// That a test failed is no error here.
func goCommand(t *testing.T, args ...string) []byte {
	t.Helper()
	return goCommandIn(t, asInstalled, args...)
}

func goCommandIn(t *testing.T, f form, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Env = append(os.Environ(), string(f))
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
