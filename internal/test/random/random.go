// Package random scales the tests that repeat a check on many inputs; tests only.
//
// A run with -short does a tenth of the work of such a test. The environment variables SQLFENCE_SEED
// and SQLFENCE_ROUNDS replace the seed and the number of rounds.
package random

import (
	"hash/fnv"
	"io"
	"os"
	"strconv"
	"testing"
)

// share is the part of the rounds, one in share, that a run with -short does.
const share = 10

// Seed returns the seed of a test with random inputs: SQLFENCE_SEED, or 1, so that a test that passed
// passes again.
func Seed(t testing.TB) uint64 {
	t.Helper()
	return number(t, "SQLFENCE_SEED", 1)
}

// Rounds returns the number of rounds of a test with random inputs: SQLFENCE_ROUNDS, or usual. With
// -short it returns a tenth of usual.
func Rounds(t testing.TB, usual int) int {
	t.Helper()
	if testing.Short() {
		usual = (usual + share - 1) / share
	}
	return int(number(t, "SQLFENCE_ROUNDS", uint64(usual)))
}

// Sample returns all inputs of a test. With -short it returns every tenth input, the same in each run.
func Sample[T any](all []T) []T {
	if !testing.Short() {
		return all
	}
	some := make([]T, 0, (len(all)+share-1)/share)
	for i := 0; i < len(all); i += share {
		some = append(some, all[i])
	}
	return some
}

// Keep reports whether a test runs the case of that name. With -short it keeps a tenth of the cases, the same in each
// run. In a large product, such as drivers × statements × faults, the kept cases are spread over all factors.
func Keep(t testing.TB, name string) bool {
	if !testing.Short() {
		return true
	}
	hash := fnv.New32a()
	_, _ = io.WriteString(hash, t.Name()+"/"+name)
	return hash.Sum32()%share == 0
}

// number returns the number in an environment variable, or usual if the variable is empty.
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
