package harness

import (
	"os"
	"strings"
	"testing"
)

// holds records that a test held a promise on a database, if the test passes and its name has the id of a promise, as in
// TestG4FailClosed. It appends a line to the file that SQLFENCE_HELD names, for package promises.
func holds(t testing.TB, database string) {
	t.Helper()
	path := os.Getenv("SQLFENCE_HELD")
	test, _, _ := strings.Cut(strings.TrimPrefix(t.Name(), "Test/"), "/") // a linked program has its tests below Test
	if path == "" || !strings.HasPrefix(test, "TestG") {
		return
	}
	t.Cleanup(func() {
		if t.Failed() || t.Skipped() {
			return
		}
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString(test + " " + database + "\n"); err != nil {
			t.Fatal(err)
		}
	})
}
