//go:build linux

package storm

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence/internal/test/need"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// FullDisk is PostgreSQL on a small disk in memory, which fills up now and then. Only root may mount one.
func FullDisk(t *testing.T) *Target {
	t.Helper()
	disk, err := os.MkdirTemp("", "sqlfence")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(disk) })
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=256m,mode=1777"); err != nil {
		need.Missing(t, "disk", fmt.Sprint("no disk of its own: ", err))
	}
	t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
	s := harness.NewServerIn(t, disk, durable+"max_wal_size = 64MB\n")
	s.Start(t)
	db := onServer(t, s)
	db.before = " on a small disk"
	db.faults = []Fault{{"disk full", 5 * time.Second, func(s *Storm, rng *rand.Rand) {
		fillUp(filepath.Join(disk, "filler"), time.Duration(rng.Int64N(int64(time.Second))))
		if !s.Target.answers() { // it may have given up in its recovery
			s.Target.crash()
		}
	}}}
	return db
}

// fillUp leaves no room on a disk for a while.
func fillUp(file string, last time.Duration) {
	f, err := os.Create(file)
	if err != nil {
		return
	}
	for chunk := make([]byte, 1<<20); ; {
		if _, err := f.Write(chunk); err != nil {
			break // it is full
		}
	}
	time.Sleep(last)
	_ = f.Close()
	_ = os.Remove(file)
}

// answers reports whether the server does, within some time.
func (db *Target) answers() bool {
	for limit := time.Now().Add(10 * time.Second); time.Now().Before(limit); time.Sleep(50 * time.Millisecond) {
		if db.Admin.Ping() == nil {
			return true
		}
	}
	return false
}
