package session

import (
	"slices"

	lite "github.com/sqlfence/sqlfence/internal/dialect/sqlite"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// SQLite is SQLite.
var SQLite Dialect = sqlite{}

type sqlite struct{}

func (sqlite) text() sqltext.Dialect { return lite.Text }

func (d sqlite) canary(*wanted, bool) string {
	return "SELECT CASE WHEN 1 <= 0 THEN 1 ELSE " + raising(d.text(), "1") + " IS NOT NULL END"
}

func (sqlite) readProof(*wanted, string) error { return nil }

func (sqlite) questions(w *wanted) []string {
	if !w.counts {
		return nil
	}
	return []string{"PRAGMA count_changes"}
}

func (sqlite) read(w *wanted, row []string) {
	w.facts.ReturnsCounts = !slices.Equal(row, []string{"0"})
}

func (sqlite) version() string { return "SELECT sqlite_version()" }

func (sqlite) unlike(*Facts) string { return "" }

func (sqlite) errorEndsTx() bool { return false }

func (sqlite) hasSettings() bool { return true }

func (sqlite) hasCharset() bool { return false }

func (sqlite) hasCounts() bool { return true }

func (sqlite) asksInTx() bool { return true }
