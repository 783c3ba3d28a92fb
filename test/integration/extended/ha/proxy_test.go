//go:build linux

package ha_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/internal/test/need"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// proxyConf takes the proxy's port; a line for each node follows it. haproxy asks Patroni's REST API which node is the
// primary, and closes the connections to a node that is no longer the primary.
const proxyConf = `defaults
  mode tcp
  timeout connect 2s
  timeout client 1h
  timeout server 1h
listen primary
  bind 127.0.0.1:%s
  option httpchk OPTIONS /primary
  http-check expect status 200
  default-server inter 1s fall 2 rise 1 on-marked-down shutdown-sessions
`

// startProxy starts haproxy and returns its port.
func startProxy(t *testing.T, c *cluster, dir string) string {
	t.Helper()
	program := need.Program(t, "haproxy")
	address, port := harness.FreeAddress(t)
	var conf strings.Builder
	fmt.Fprintf(&conf, proxyConf, port)
	for _, n := range c.nodes {
		fmt.Fprintf(&conf, "  server %s 127.0.0.1:%s check port %s\n", n.name, n.port, n.rest)
	}
	file := filepath.Join(dir, "haproxy.cfg")
	if err := os.WriteFile(file, []byte(conf.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	harness.Run(t, address, program, "-db", "-f", file)
	return port
}
