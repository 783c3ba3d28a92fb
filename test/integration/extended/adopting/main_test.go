package adopting_test

import (
	"testing"

	"github.com/sqlfence/sqlfence/internal/nonce"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

func TestMain(m *testing.M) {
	nonce.Fix("nonce")
	harness.Main(m)
}
