package harness

import (
	"database/sql"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// busyTimeout is SQLite's Patience, in milliseconds.
var busyTimeout = strconv.FormatInt(Patience.Milliseconds(), 10)

// Impatient is the DSN of a SQLite file without patience: who finds it locked isn't kept waiting.
func Impatient(dsn string) string {
	return strings.NewReplacer("_busy_timeout="+busyTimeout, "_busy_timeout=1", "busy_timeout("+busyTimeout+")", "busy_timeout(1)").Replace(dsn)
}

// sqliteFile creates a database file and returns its DSN with params. The first
// connection turns WAL on for good: where several did at once, one of them could
// meet SQLITE_BUSY, which busy_timeout doesn't cover there.
func sqliteFile(t testing.TB, b Base, params string) string {
	t.Helper()
	holds(t, "SQLite")
	// A second test of one name has a # in its folder's, which would end a URI's path.
	dsn := "file:" + strings.ReplaceAll(filepath.Join(t.TempDir(), "test.db"), "#", "%23") + "?" + params
	db, err := sql.Open(b.DriverName, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Ping(); err != nil {
		t.Fatal(err)
	}
	var mode string
	if err := db.QueryRow("PRAGMA journal_mode").Scan(&mode); err != nil || mode != "wal" {
		t.Fatalf("journal_mode = %q, %v; want wal", mode, err)
	}
	return dsn
}
