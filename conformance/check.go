package conformance

import (
	"slices"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
)

// A check is one thing that must hold. Exactly one of steps and guarantee is set.
type check struct {
	name, explanation string

	// steps are taken with the driver alone and with sqlfence around it.
	steps func(s *side)
	// varies says that some drivers alone are not the same each time. What is
	// seen with sqlfence must then have been seen with the driver alone in one
	// of several attempts.
	varies bool

	// guarantee is checked on a fenced database.
	guarantee func(f *fenced)
}

const registered = "/registered"

var checks = slices.Concat(
	valueChecks, columnChecks, interfaceChecks, resultChecks, errorChecks,
	transactionChecks, cancelChecks, preparedChecks, poolChecks,
	staleChecks, closedChecks, tokenChecks, ruleChecks, callChecks, raceChecks,
)

func (c check) half() string {
	if c.steps != nil {
		return Transparency
	}
	return Fencing
}

func (c check) results() []string {
	if c.steps != nil {
		return []string{c.name, c.name + registered}
	}
	return []string{c.name}
}

// run makes the check. Failures are values here, so that the suite itself can
// be tested.
func (c check) run(t testing.TB, h Harness, d sqlfence.Dialect) []Result {
	t.Helper()
	var raw []*side
	var results []Result
	for _, name := range c.results() {
		r := Result{Name: name, Half: c.half(), Explanation: c.explanation, Outcome: Passed}
		if reason, ok := h.skip(name); ok {
			r.Outcome, r.Reason = Skipped, reason
		} else if c.guarantee != nil {
			r.Reason = guarantee(t, h, d, c.guarantee)
		} else {
			variant := wrapped
			if name != c.name {
				variant = wrappedRegistered
			}
			r.Reason = c.attempts(func(attempt int) string {
				if len(raw) == 0 || attempt > 0 {
					raw = append(raw, take(t, h, d, alone, c.steps))
				}
				return compare(raw, take(t, h, d, variant, c.steps))
			})
		}
		if r.Outcome == Passed && r.Reason != "" {
			r.Outcome = Failed
		}
		results = append(results, r)
	}
	return results
}

// paused is how long an attempt takes if the machine, or the database, stood still meanwhile. That decides
// what a driver says: some give up by themselves after 5 s.
const paused = 4 * time.Second

// attempts returns why a comparison fails, or "". It is made again where it varies, and a few times where
// there may have been a pause. A guarantee isn't: it holds through any pause.
func (c check) attempts(try func(attempt int) (reason string)) (reason string) {
	for attempt := 0; ; attempt++ {
		began := time.Now()
		reason = try(attempt)
		again := c.varies && attempt < 9 || time.Since(began) > paused && attempt < 4
		if reason == "" || !again {
			return reason
		}
	}
}
