// Package forged_test has the tests of G10: an error is taken for a guard's or a seal's by what no
// user's value can hold, and a negative mark counts by its size.
package forged_test

import (
	"testing"

	"github.com/sqlfence/sqlfence/test/integration/harness"
)

func TestMain(m *testing.M) {
	harness.Natively()
	harness.Main(m)
}
