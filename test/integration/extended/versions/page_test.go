package main

import (
	"path/filepath"
	"strings"
	"testing"
)

const checkout = "../../../.."

// docs/data/servers.md must hold the recorded test results, and the servers that the code refuses.
func TestPage(t *testing.T) {
	name, is, want, err := page(checkout)
	if err != nil {
		t.Fatal(err)
	}
	if is != want {
		t.Errorf("%s is out of date; go run ./test/integration/extended/versions -page writes it:\n%s", name, want)
	}
}

// On a server that the page calls tested, no recorded test may have failed.
func TestResults(t *testing.T) {
	results, err := readResults(checkout)
	if err != nil || len(results) < 3 {
		t.Fatal(results, err)
	}
	for _, r := range results {
		if passed, failed := r.counts(); passed < 300 || len(failed) > 0 {
			t.Errorf("%s %s: %d tests passed, failed: %s", r.Server, r.Version, passed, strings.Join(failed, ", "))
		}
	}
}

// If the table of MySQL's family names a folder of tests for a server, the folder must have tests.
func TestFamilyHasTests(t *testing.T) {
	for _, m := range family {
		if m.tests == "" {
			continue
		}
		if tests, err := filepath.Glob(filepath.Join(checkout, m.tests, "*_test.go")); err != nil || len(tests) == 0 {
			t.Errorf("%s: no tests in %s: %v", m.name, m.tests, err)
		}
	}
}
