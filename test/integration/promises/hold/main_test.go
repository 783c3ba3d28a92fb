package hold_test

import (
	"testing"

	"github.com/sqlfence/sqlfence/test/integration/harness"
)

func TestMain(m *testing.M) {
	harness.Natively()
	harness.Main(m)
}
