package conformance

import (
	"slices"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
)

// A check tests one property. Exactly one of steps and guarantee is set.
type check struct {
	name, explanation string

	// steps are taken with the driver alone and with sqlfence around it.
	steps func(s *side)
	// varies marks a check that has different results from run to run with some drivers, even without sqlfence. Then
	// each result with sqlfence must equal the driver's own result in at least one of several attempts.
	varies bool

	// guarantee tests a promise of sqlfence on fenced databases, without a comparison.
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

// run makes the check. run returns failures as values, so that tests can check the suite.
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

// paused is the duration from which an attempt counts as paused by the machine or the database. A pause can change a
// driver's results, because some drivers give up after 5 s.
const paused = 4 * time.Second

// attempts calls try, which compares results and returns a reason if they differ, and returns the last reason, or "".
// It repeats a failed comparison up to 9 times if the check varies, and up to 4 times if the machine may have paused
// it. The checks of guarantees don't use attempts, because a guarantee must hold through any pause.
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
