package session

import "github.com/sqlfence/sqlfence/internal/sqltext"

// SQLite is SQLite, of which nothing has to be known but that it raises.
var SQLite Dialect = sqlite{}

type sqlite struct{}

func (sqlite) text() sqltext.Dialect { return sqltext.SQLite }

func (d sqlite) canary(*wanted, bool) string {
	return "SELECT CASE WHEN 1 <= 0 THEN 1 ELSE " + raising(d.text(), "1") + " IS NOT NULL END"
}

func (sqlite) readProof(*wanted, string) error { return nil }

func (sqlite) questions(*wanted) []string { return nil }

func (sqlite) read(*wanted, []string) {}

func (sqlite) version() string { return "SELECT sqlite_version()" }

func (sqlite) unlike(*Facts) string { return "" }

func (sqlite) errorEndsTx() bool { return false }

func (sqlite) hasSettings() bool { return false }

func (sqlite) asksInTx() bool { return true }
