package harness

import (
	"os"
	"strconv"
	"testing"
)

// Seed returns where a test of random statements begins: SQLFENCE_SEED, and 1 without it, so that
// what passed passes again. Whoever changes what such a test is about gives it other seeds, and more rounds.
func Seed(t testing.TB) uint64 {
	t.Helper()
	return number(t, "SQLFENCE_SEED", 1)
}

// Rounds returns how often such a test tries: SQLFENCE_ROUNDS, and without it usual, of which a
// short run does a tenth.
func Rounds(t testing.TB, usual int) int {
	t.Helper()
	if testing.Short() {
		usual = (usual + 9) / 10
	}
	return int(number(t, "SQLFENCE_ROUNDS", uint64(usual)))
}

func number(t testing.TB, name string, usual uint64) uint64 {
	t.Helper()
	s := os.Getenv(name)
	if s == "" {
		return usual
	}
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}
