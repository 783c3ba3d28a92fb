// Package plans_test compares the rows that a guarded statement reads with those that it reads without its guard.
package plans_test

import (
	"testing"

	"github.com/sqlfence/sqlfence/test/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
