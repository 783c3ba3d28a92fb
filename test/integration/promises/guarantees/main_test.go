package guarantees_test

import (
	"testing"

	"github.com/sqlfence/sqlfence/test/integration/harness"
)

func TestMain(m *testing.M) {
	harness.BothCaches()
	harness.Natively()
	harness.EveryLevel()
	harness.Main(m)
}
