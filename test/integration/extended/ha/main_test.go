// Package ha_test tests sqlfence on PostgreSQL under Patroni: three nodes, an etcd, and clients that write while
// leaders are switched over, killed, paused or cut off.
package ha_test

import (
	"testing"

	"github.com/sqlfence/sqlfence/test/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
