// Package promises_test keeps docs/data/promises-tests.md, the list of the tests that hold each promise of docs/promises.md on
// each database.
//
// A test belongs to the promises with the ids at the beginning of its name: TestG1G2WriteThatWaits holds G1 and G2. A
// test holds its promises on the databases on which it passes in a short run. That run has SQLFENCE_HELD name a file to
// which package harness adds those tests, and then runs the test of this package, which compares the file with the
// page. After a change of the tests:
//
//	scripts/with-postgres scripts/with-mariadb go test ./promises -update-promises
package promises_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update-promises", false, "run the tests that hold promises, and write docs/data/promises-tests.md")

const (
	promises = "../../../docs/promises.md"
	page     = "../../../docs/data/promises-tests.md"
)

var databases = []string{"PostgreSQL", "SQLite", "MariaDB"}

// only are the promises that hold on one database alone.
var only = map[string]string{"G9": "PostgreSQL"}

var (
	promiseRow = regexp.MustCompile(`(?m)^\| (G\d+) \| ([^|]+) \|`)
	listed     = regexp.MustCompile(`(?m)^- (TestG\w+) \(([^,)]+)\): (.+)$`)
	declared   = regexp.MustCompile(`(?m)^func (Test(?:G\d+)+\w+)\(t \*testing\.T\)`)
	id         = regexp.MustCompile(`G\d+`)
	ids        = regexp.MustCompile(`^Test((?:G\d+)+)`)
)

// A held test is in a folder, and holds its promises on databases.
type held struct {
	folder string
	on     map[string]bool
}

// TestListOfPromises fails if the page doesn't list exactly the tests in the code, if a short run passed other tests
// than the page says, or if a promise has no test on a database.
func TestListOfPromises(t *testing.T) {
	tests := declaredTests(t)
	switch run := os.Getenv("SQLFENCE_HELD"); {
	case *update:
		readRun(t, runTests(t, tests), tests)
	case run != "":
		readRun(t, run, tests)
	default:
		readPage(t, tests)
	}
	want := list(t, tests)
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if has := read(t, page); want != has {
		t.Errorf("%s isn't what the tests hold; go test ./promises -update-promises writes it anew. Only on the page:\n%sOnly held:\n%s",
			page, linesBeyond(has, want), linesBeyond(want, has))
	}
}

// linesBeyond returns the lines of text that other doesn't have.
func linesBeyond(text, other string) (beyond string) {
	for line := range strings.Lines(text) {
		if !strings.Contains(other, line) {
			beyond += line
		}
	}
	return beyond
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// declaredTests returns the tests with ids, by name.
func declaredTests(t *testing.T) map[string]held {
	t.Helper()
	files, err := filepath.Glob("*/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	tests := make(map[string]held)
	for _, file := range files {
		for _, found := range declared.FindAllStringSubmatch(read(t, file), -1) {
			if _, twice := tests[found[1]]; twice {
				t.Errorf("two tests are called %s", found[1])
			}
			tests[found[1]] = held{filepath.Dir(file), make(map[string]bool)}
		}
	}
	return tests
}

// runTests runs the tests, and returns the file with those that passed.
func runTests(t *testing.T, tests map[string]held) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "held")
	args := []string{"test", "-short", "-count=1", "-run=^TestG[0-9]"}
	for _, test := range tests {
		if folder := "./" + test.folder; !slices.Contains(args, folder) {
			args = append(args, folder)
		}
	}
	run := exec.Command("go", args...)
	run.Env = append(os.Environ(), "SQLFENCE_HELD="+file, "SQLFENCE_REQUIRE=postgres mysql")
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return file
}

// readRun adds the databases on which the tests of a run passed.
func readRun(t *testing.T, file string, tests map[string]held) {
	t.Helper()
	for line := range strings.Lines(read(t, file)) {
		if test, database, _ := strings.Cut(strings.TrimSpace(line), " "); tests[test].on != nil {
			tests[test].on[database] = true
		}
	}
}

// readPage adds the databases that the page lists for each test.
func readPage(t *testing.T, tests map[string]held) {
	t.Helper()
	for _, line := range listed.FindAllStringSubmatch(read(t, page), -1) {
		if tests[line[1]].on == nil {
			t.Errorf("there is no %s any more", line[1])
			continue
		}
		for database := range strings.SplitSeq(line[3], ", ") {
			tests[line[1]].on[database] = true
		}
	}
}

// list returns the page. It fails the test if a promise has no test on a database, or a test holds no known promise.
func list(t *testing.T, tests map[string]held) string {
	t.Helper()
	text := "# The tests that hold each promise\n\n" +
		"A short run of the tests (`make test`) wrote this list. A test belongs to the [promises](../promises.md) with the ids " +
		"in its name. Each line names the test, its folder in test/integration/promises, and the databases on which the test " +
		"passes.\n"
	known := make(map[string]bool)
	for _, promise := range promiseRow.FindAllStringSubmatch(read(t, promises), -1) {
		known[promise[1]] = true
		text += fmt.Sprintf("\n## %s %s\n\n", promise[1], promise[2])
		on := make(map[string]bool)
		for _, name := range slices.Sorted(maps.Keys(tests)) {
			if !slices.Contains(id.FindAllString(ids.FindString(name), -1), promise[1]) {
				continue
			}
			has := slices.DeleteFunc(slices.Clone(databases), func(d string) bool { return !tests[name].on[d] })
			if len(has) == 0 {
				has = []string{"no database"}
			}
			text += fmt.Sprintf("- %s (%s): %s\n", name, tests[name].folder, strings.Join(has, ", "))
			maps.Copy(on, tests[name].on)
		}
		for _, database := range databases {
			if !on[database] && (only[promise[1]] == "" || only[promise[1]] == database) {
				t.Errorf("no test holds %s on %s", promise[1], database)
			}
		}
	}
	for name := range tests {
		for _, of := range id.FindAllString(ids.FindString(name), -1) {
			if !known[of] {
				t.Errorf("%s holds %s, which isn't in %s", name, of, promises)
			}
		}
	}
	return text
}
