// Package orders_test runs the steps of two and three sessions in every order, on each database, at each isolation
// level, for each rule and each pair of rules that may stand together. PostgreSQL's isolation tester is its model.
//
//   - A cast ([casts]) says what the sessions do, as texts of steps; a scenario is a cast under a [ruleset].
//   - The [machine] begins each step as soon as those before it in the order have ended or wait for a lock. That they
//     wait, the database says ([database]).
//   - What came of it is a history of [op]s. [explain] looks for a sequence of what was committed and of what was
//     refused that agrees with the times, in which a [state], the model of what is promised, gives the same answers,
//     and leaves the same rows. If there is none, a promise was broken.
//   - [controls] are other ways to guard a write. They go through the same machine, which has to catch each.
//
// How many orders there are is in docs/data/orders.md.
package orders_test

import (
	"testing"

	"github.com/sqlfence/sqlfence/test/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
