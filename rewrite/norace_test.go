//go:build !race

package rewrite

import "testing"

const raceEnabled = false

// oneGoroutine says that a long test has no other. The race detector, under which it is
// skipped, would find nothing in it and take ten times as long; scripts/test runs it without.
func oneGoroutine(testing.TB) {}
