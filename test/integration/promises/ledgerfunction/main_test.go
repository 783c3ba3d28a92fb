// Package ledgerfunction_test has the tests of the stored function by which guards ask the
// ledger: that it is used where it is found, what it costs, and what else may happen to it.
package ledgerfunction_test

import (
	"testing"

	"github.com/sqlfence/sqlfence/test/integration/harness"
)

func TestMain(m *testing.M) {
	harness.Natively()
	harness.Main(m)
}
