// Package ha_test has the tests of PostgreSQL as Patroni keeps it available: three nodes, an etcd, and clients that
// write while leaders are switched over, killed, stopped or cut off.
package ha_test

import (
	"testing"

	"github.com/sqlfence/sqlfence/test/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
