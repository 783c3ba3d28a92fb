package harness

import (
	"testing"

	"github.com/sqlfence/sqlfence/internal/test/random"
)

// Seed is [random.Seed]. After a change to what a random test is about, give that test other seeds, and more rounds.
func Seed(t testing.TB) uint64 {
	t.Helper()
	return random.Seed(t)
}

// Rounds is [random.Rounds].
func Rounds(t testing.TB, usual int) int {
	t.Helper()
	return random.Rounds(t, usual)
}

// Keep is [random.Keep].
func Keep(t testing.TB, name string) bool {
	t.Helper()
	return random.Keep(t, name)
}
