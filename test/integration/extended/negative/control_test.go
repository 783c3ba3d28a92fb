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
	"strconv"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// The tests of the guarantees must be able to fail. Each test here removes a part of a guard with the go command's
// -overlay, and runs tests of the guarantees on the result. The library has no switch for this, and its files don't
// change. Each named test must fail on each named base. Building takes most of the time, so only the packages with
// these tests are built, and each database has one base.

// all are the bases, and servers those with concurrent writers. unlike are the bases whose guards differ from MySQL's.
var (
	all      = []string{"pgx", "mattn", "mysql"}
	postgres = all[:1]
	sqlite   = all[1:2]
	mysql    = all[2:]
	unlike   = all[:2]
	servers  = []string{"pgx", "mysql"}
)

// raceEnabled passes this program's race setting on, so that the build cache is reused.
var raceEnabled = strconv.FormatBool(harness.RaceEnabled)

// needed skips the test in a short run, where the go command must not run, and without a server.
func needed(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("runs the go command")
	}
	harness.NeedPostgres(t)
	harness.MySQLDSN(t)
}

// replaced returns an overlay that replaces a file of the library with a changed copy.
func replaced(t *testing.T, file string, change func(source string) string) map[string]string {
	t.Helper()
	path := filepath.Join(libraryDir(t), file)
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

func libraryDir(t *testing.T) string {
	t.Helper()
	return strings.TrimSpace(string(command(t, "go", "list", "-f", "{{.Dir}}", "github.com/sqlfence/sqlfence")))
}

// wantFailing runs tests of packages in promises with some of the library's files replaced.
func wantFailing(t *testing.T, packages string, replace map[string]string, tests map[string][]string) {
	t.Helper()
	built(t, packages, replace).wantFailing(t, tests)
}

// A build holds the test programs of some packages, by folder.
type build map[string]string

// built builds the test programs of packages with some of the library's files replaced.
func built(t *testing.T, packages string, replace map[string]string) build {
	t.Helper()
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	b := make(build)
	for _, name := range strings.Fields(packages) {
		b["../../promises/"+name] = filepath.Join(dir, name+".test")
		command(t, "go", "test", "-race="+raceEnabled, "-c", "-vet=off", "-ldflags=-s -w", "-overlay="+file, "-o", b["../../promises/"+name], "../../promises/"+name)
	}
	return b
}

// of returns the test programs of some of the packages.
func (b build) of(packages string) build {
	some := make(build)
	for _, name := range strings.Fields(packages) {
		some["../../promises/"+name] = b["../../promises/"+name]
	}
	return some
}

// wantFailing runs tests with additional environment variables. Each test must fail on each of its bases.
func (b build) wantFailing(t *testing.T, tests map[string][]string, env ...string) {
	t.Helper()
	bases := slices.Compact(slices.Sorted(func(yield func(string) bool) {
		for _, of := range tests {
			for _, base := range of {
				if !yield(base) {
					return
				}
			}
		}
	}))
	results := map[string]string{}
	for range 3 { // a test of a race may pass by chance
		run := "^(" + strings.Join(slices.Sorted(maps.Keys(tests)), "|") + ")$/^(" + strings.Join(bases, "|") + ")$"
		for dir, program := range b {
			maps.Copy(results, outcomes(t, dir, env, program, "-test.run="+run))
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

// command runs a program in this folder and returns its output.
func command(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, stderr.Bytes())
	}
	return out
}

// outcomes runs tests in a folder and returns "pass", "fail" or "skip" by test. A failed test isn't an error here.
func outcomes(t *testing.T, dir string, env []string, program string, args ...string) map[string]string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"tool", "test2json", program, "-test.v=test2json"}, args...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	output, err := cmd.Output()
	if len(output) == 0 {
		t.Fatalf("%s: %v", program, err)
	}
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
		case strings.HasPrefix(e.Output, "panic:"):
			t.Error(e.Output) // a panic would make every test fail, so it proves nothing
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return results
}

// Without an overlay the test builds and passes. It runs TestDatabasesAreFresh, which checks the databases.
func TestDatabasesAreThere(t *testing.T) {
	needed(t)
	command(t, "go", "test", "-race="+raceEnabled, "-run=^TestDatabasesAreFresh$", "../../harness")
}
