// Package plans_test compares the number of rows that a statement reads with its guard and without it.
package plans_test

import (
	"testing"

	"github.com/sqlfence/sqlfence/test/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
