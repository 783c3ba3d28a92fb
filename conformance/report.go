package conformance

import (
	"fmt"
	"strings"
)

// The halves of the suite.
const (
	Transparency = "transparency"
	Fencing      = "fencing"
)

// An Outcome is the outcome of a check.
type Outcome int

// The outcomes. The zero Outcome is invalid.
const (
	Passed Outcome = iota + 1
	Failed
	Skipped
)

// String returns "passed", "failed" or "skipped", and "unknown" for any other.
func (o Outcome) String() string {
	switch o {
	case Passed:
		return "passed"
	case Failed:
		return "failed"
	case Skipped:
		return "skipped"
	}
	return "unknown"
}

// A Result is the result of one check.
type Result struct {
	Name        string // "values"; "values/registered" with the table registered
	Half        string // Transparency or Fencing
	Explanation string // the checked property
	Outcome     Outcome
	Reason      string // why it failed or was skipped; empty if it passed
}

// A Report has the results of all checks, in a fixed order. The zero Report is empty.
type Report struct {
	Results []Result
}

// Failed returns the results of the checks that failed.
func (r Report) Failed() []Result {
	var failed []Result
	for _, result := range r.Results {
		if result.Outcome == Failed {
			failed = append(failed, result)
		}
	}
	return failed
}

// String returns a line for each result, in a form for people to read.
func (r Report) String() string {
	var b strings.Builder
	for _, result := range r.Results {
		fmt.Fprintf(&b, "%-12s  %-36s  %v", result.Half, result.Name, result.Outcome)
		if result.Reason != "" {
			first, _, _ := strings.Cut(result.Reason, "\n")
			fmt.Fprintf(&b, ": %s", first)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
