package zookeeper_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/sqlfence/sqlfence/contrib/fencezookeeper"
	"github.com/sqlfence/sqlfence/internal/test/need"
	"github.com/sqlfence/sqlfence/test/integration/extended/locks/paused"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

var service = paused.Service{
	Start: func(t *testing.T) string {
		program := need.Program(t, "zkServer.sh", "/usr/share/zookeeper/bin/zkServer.sh")
		address, port := harness.FreeAddress(t)
		dir := t.TempDir()
		config := filepath.Join(dir, "zoo.cfg")
		text := fmt.Sprintf("tickTime=500\ndataDir=%s\nclientPort=%s\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n", dir, port)
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv("ZOO_LOG_DIR", dir)
		harness.Run(t, address, program, "start-foreground", config)
		harness.Eventually(t, "ZooKeeper serves", func() bool { return serves(address) })
		return address
	},
	Lock: func(ctx context.Context, address string, store *tokens.Store) (context.Context, func() error, error) {
		conn, _, err := zk.Connect([]string{address}, time.Second, zk.WithLogInfo(false))
		if err != nil {
			return nil, nil, err
		}
		held, lock, err := fencezookeeper.Lock(ctx, store, "report", conn, "/locks/report", zk.WorldACL(zk.PermAll))
		return held, func() error {
			defer conn.Close()
			return lock.Unlock()
		}, err
	},
}

// serves reports whether the server answers requests. The server listens on its port before it can answer.
func serves(address string) bool {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return false
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return false
	}
	if _, err := c.Write([]byte("srvr")); err != nil {
		return false
	}
	said, err := io.ReadAll(c)
	return err == nil && bytes.Contains(said, []byte("Mode: "))
}
