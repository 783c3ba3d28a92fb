package rewrite

import (
	"testing"

	"github.com/sqlfence/sqlfence/internal/fakedb"
)

// oneGoroutine says that a long test has no other. The race detector, under which it is
// skipped, would find nothing in it and take ten times as long; scripts/test runs it without.
func oneGoroutine(t testing.TB) {
	t.Helper()
	if fakedb.Race {
		t.Skip("has one goroutine: run without the race detector")
	}
}
