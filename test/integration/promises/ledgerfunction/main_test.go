// Package ledgerfunction_test tests the stored function by which guards query the ledger: its use, its cost, and
// changes by other clients.
package ledgerfunction_test

import (
	"testing"

	"github.com/sqlfence/sqlfence/test/integration/harness"
)

func TestMain(m *testing.M) {
	harness.Natively()
	harness.Main(m)
}
