//go:build linux

package storm

import (
	"testing"
	"time"

	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/test/proof/history"
)

// MariaDB starts a server that loses no acknowledged transaction.
func MariaDB(t *testing.T) *Target {
	t.Helper()
	s := harness.NewMariaDB(t, "--innodb-flush-log-at-trx-commit=1", "--innodb-lock-wait-timeout=1", "--idle-transaction-timeout=1")
	db := &Target{
		Database: "mariadb", TTL: 300 * time.Millisecond, Tables: history.All, Wire: NewWire(t, s.DSN()), Admin: open(t, "mysql", s.DSN()),
		Forms:    []string{"update prepared"},
		Levels:   []string{"read committed", "repeatable read", "serializable"},
		sessions: "SELECT ID FROM information_schema.PROCESSLIST WHERE USER = 'sqlfence' AND ID <> CONNECTION_ID()",
		end:      "KILL %d",
		version:  "SELECT concat('MariaDB ', version())",
		empty:    []string{"TRUNCATE history", "ALTER TABLE history AUTO_INCREMENT = %d"},
		crash:    func() { s.Kill(); s.StartAgain(t) },
	}
	db.DSN = db.Wire.DSN
	return db
}
