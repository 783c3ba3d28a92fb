package rewrite

import (
	"testing"

	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

// oneGoroutine skips a long test without other goroutines under the race detector, which would find nothing and take
// ten times as long. scripts/test runs the test without the race detector.
func oneGoroutine(t testing.TB) {
	t.Helper()
	if fakedb.Race {
		t.Skip("has one goroutine: run without the race detector")
	}
}
