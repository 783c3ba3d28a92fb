package transparency_test

import (
	"testing"

	"github.com/sqlfence/sqlfence/integration/harness"
	"github.com/sqlfence/sqlfence/internal/nonce"
)

func TestMain(m *testing.M) {
	nonce.Fix("nonce")
	harness.Main(m)
}
