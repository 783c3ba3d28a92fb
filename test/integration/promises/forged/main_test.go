// Package forged_test has the tests of G10: an error counts as a guard's or a seal's only by a part that no user's
// value can contain, and a negative stored token counts as its absolute value.
package forged_test

import (
	"testing"

	"github.com/sqlfence/sqlfence/test/integration/harness"
)

func TestMain(m *testing.M) {
	harness.Natively()
	harness.Main(m)
}
