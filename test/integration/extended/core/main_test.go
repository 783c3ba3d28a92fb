package core_test

import (
	"testing"

	"github.com/sqlfence/sqlfence/test/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
