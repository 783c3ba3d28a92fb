//go:build linux

package storm

import (
	"strings"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/test/proof/history"
)

// Postgres starts a server that loses no acknowledged transaction.
func Postgres(t *testing.T) *Target {
	t.Helper()
	s := harness.NewServer(t, durable)
	s.Start(t)
	return onServer(t, s)
}

// durable is a server's configuration: acknowledged commits are on disk, and the server ends idle transactions, which
// hold locks.
const durable = "fsync = on\nmax_connections = 200\nshared_buffers = 64MB\nmax_wal_size = 1GB\ndeadlock_timeout = 100ms\n" +
	"lock_timeout = 1s\nidle_in_transaction_session_timeout = 500ms\n"

func onServer(t *testing.T, s *harness.Server) *Target {
	t.Helper()
	db := &Target{
		Database: "postgres", TTL: 300 * time.Millisecond, Tables: history.All, Wire: NewWire(t, s.DSN()),
		Admin: open(t, "pgx", s.DSN()), direct: s.DSN(),
		Forms:    []string{"update prepared", "returning", "merge"},
		Levels:   []string{"read committed", "repeatable read", "serializable"},
		sessions: "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
		end:      "SELECT pg_terminate_backend(%d)",
		version:  "SELECT 'PostgreSQL ' || current_setting('server_version')",
		empty:    []string{"TRUNCATE history"},
		crash:    func() { s.Kill(t); s.StartAgain(t) },
	}
	db.DSN = db.Wire.DSN
	return db
}

// Another returns a new database on the same PostgreSQL server, with a separate wire.
func (db *Target) Another(t *testing.T, name string) *Target {
	t.Helper()
	if _, err := db.Admin.Exec("CREATE DATABASE " + name); err != nil {
		t.Fatal(err)
	}
	other := *db
	other.direct = strings.Replace(db.direct, "/postgres?", "/"+name+"?", 1)
	other.Wire, other.Admin = NewWire(t, other.direct), open(t, "pgx", other.direct)
	other.DSN = other.Wire.DSN
	return &other
}

// Direct is the server's data source name, by no wire.
func (db *Target) Direct() string { return db.direct }
