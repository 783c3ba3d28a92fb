package vitess_test

import (
	"database/sql"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// A killer kills MySQL and vtcombo in turn. scripts/with-vitess starts a killed server again.
type killer struct {
	t     *testing.T
	plain *sql.DB
	files []string // with the servers' process ids, MySQL's first; none for a server that the test may not kill
	kills atomic.Int64
	stale func() int64 // how many stale writes have a known outcome
}

func newKiller(t *testing.T, plain *sql.DB, stale func() int64) *killer {
	t.Helper()
	return &killer{t: t, plain: plain, stale: stale, files: strings.Fields(os.Getenv("SQLFENCE_VITESS_PIDS"))}
}

// done reports whether each server was killed.
func (k *killer) done() bool { return k.kills.Load() >= int64(len(k.files)) }

func (k *killer) String() string { return fmt.Sprintf("%d servers were killed", k.kills.Load()) }

// run kills the next server whenever Vitess has worked for 10 s, until over is closed.
func (k *killer) run(over chan struct{}) {
	for len(k.files) > 0 && !k.t.Failed() {
		select {
		case <-over:
			return
		case <-time.After(10 * time.Second):
		}
		began := time.Now()
		k.kill(k.files[k.kills.Load()%int64(len(k.files))])
		k.t.Logf("a server was away for %v, after %d stale attempts", time.Since(began).Round(100*time.Millisecond), k.stale())
		k.kills.Add(1)
	}
}

// kill kills a server and waits until the server has been started again and the shards answer.
func (k *killer) kill(file string) {
	pid, err := process(file)
	if err != nil {
		k.t.Error(err)
		return
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		k.t.Error(err)
		return
	}
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		var rows int
		now, err := process(file)
		if err == nil && now != pid {
			err = k.plain.QueryRow("SELECT COUNT(*) FROM books").Scan(&rows)
			for _, keyspace := range keyspaces {
				if err == nil {
					_, err = k.plain.Exec("SHOW TABLES FROM " + keyspace)
				}
			}
			if err == nil {
				return
			}
		}
		if time.Now().After(deadline) {
			k.t.Errorf("the server of %s has not come back: %v", file, err)
			return
		}
	}
}

// process returns the process id in a file.
func process(file string) (int, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}
