// Package stmtcache_test has the tests of the statements that connections keep prepared.
package stmtcache_test

import (
	"testing"

	"github.com/sqlfence/sqlfence/integration/harness"
)

func TestMain(m *testing.M) {
	harness.Main(m)
}
