//go:build race

package rewrite

import "testing"

const raceEnabled = true

func oneGoroutine(t testing.TB) {
	t.Helper()
	t.Skip("has one goroutine: run without the race detector")
}
