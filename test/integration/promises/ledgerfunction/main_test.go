// Package ledgerfunction_test tests the stored function by which guards read the ledger: when they call it, what a call
// costs, and what happens if other clients change the function or its table.
package ledgerfunction_test

import (
	"testing"

	"github.com/sqlfence/sqlfence/test/integration/harness"
)

func TestMain(m *testing.M) {
	harness.Natively()
	harness.Main(m)
}
