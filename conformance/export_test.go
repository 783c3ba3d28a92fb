package conformance

import (
	"testing"

	"github.com/sqlfence/sqlfence"
)

// CheckNames returns the names of all checks.
func CheckNames() (names []string) {
	for _, c := range checks {
		names = append(names, c.name)
	}
	return names
}

// CheckNothing returns the results of both halves of a check that does nothing, with a harness for SQLite's SQL.
func CheckNothing(t testing.TB, h Harness) []Result {
	return append(check{name: "no steps", steps: func(*side) {}}.run(t, h, sqlfence.SQLite),
		check{name: "no guarantee", guarantee: func(*fenced) {}}.run(t, h, sqlfence.SQLite)...)
}
