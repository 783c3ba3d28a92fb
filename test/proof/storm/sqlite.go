//go:build linux

package storm

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence/test/proof/history"
)

// SQLite is a file.
func SQLite(t *testing.T) *Target {
	t.Helper()
	file := filepath.Join(t.TempDir(), "storm.db")
	return &Target{
		Database: "sqlite", Tables: history.For(false, true), TTL: 100 * time.Millisecond, DSN: file,
		Admin:   open(t, "sqlite3", "file:"+file+"?_busy_timeout=60000&_journal_mode=WAL"),
		Forms:   []string{"update prepared", "returning"},
		Levels:  []string{"serializable"},
		version: "SELECT 'SQLite ' || sqlite_version()",
		empty:   []string{"DELETE FROM history"},
	}
}
