// Package orders_test runs the steps of two and three sessions in every order, on each database, at each isolation
// level, for each rule and each pair of rules that may stand together. PostgreSQL's isolation tester is its model.
//
//   - A cast ([casts]) holds the steps of the sessions; a scenario is a cast under a [ruleset].
//   - The [machine] begins each step as soon as the earlier steps of the order have ended or wait for a lock. The
//     database reports waiting steps ([database]).
//   - The result is a history of [op]s. [explain] searches for a sequence of the commits and refusals that agrees with
//     the times, and in which a [state], the model of the promises, gives the same responses and the same rows. If no
//     sequence exists, a promise was broken.
//   - [controls] are alternative guards, which the same machine runs and must catch.
//
// How many orders there are is in docs/data/orders.md.
package orders_test

import (
	"testing"

	"github.com/sqlfence/sqlfence/test/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
