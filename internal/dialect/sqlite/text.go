// Package sqlite has all that is specific to SQLite, a file a subject. Other databases have the same files.
package sqlite

import (
	"strings"
	"sync"
	"time"

	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/fact"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// Text builds SQL for SQLite. SQLite runs in the process, and processes that share a file share a machine and its
// clock. SQLite reads the clock once in a statement, after the wait for the file's write lock.
var Text sqltext.Dialect = text{}

type text struct{}

func (text) Convert(x string, t sqltext.Type) string { return sqltext.Convert(x, t) }

// Quote writes backquotes: SQLite would read a name in double quotes as a string if there is no such column.
func (text) Quote(name string) string {
	return "`" + strings.ReplaceAll(name, "`", "``") + "`"
}

func (text) Text(s string) string { return sqltext.QuoteText(s) }

// Bool: true and false would be columns if a table has columns with these names.
func (text) Bool(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// Cast: SQLite goes by the argument itself.
func (text) Cast(sqltext.Type) string { return "" }

// Now rounds the time to milliseconds. SQLite keeps whole milliseconds, and julianday('now') is a floating-point number
// of days, less than 0.03 ms off. Without rounding, half of all times would be one millisecond too early, and a lock
// that has ended by SQLite's clock would be alive by Now.
func (text) Now() string {
	return "CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)"
}

func (d text) After(ticks string) string { return "(" + d.Now() + " + " + ticks + ")" }

func (text) Ticks(d time.Duration) int64 { return sqltext.Ticks(d, time.Millisecond) }

// Micros: the cast limits a product that is too large to the highest integer, where SQLite would return a
// floating-point number. The cast also drops the column's declared type, which drivers use to convert values.
func (text) Micros(time string) string { return "CAST((" + time + ") * 1000 AS INTEGER)" }

// Throwing is an error of the kind SQLITE_ERROR, with the text in the message.
func (text) Throwing() (before, between, behind string) {
	return "json_extract('{}', ", " || ", ")"
}

func (text) Thrown(err error) (text string, ok bool) {
	if code, ok, own := dberr.SQLiteError(err); ok {
		return own.Error(), code == dberr.SQLiteGeneral
	}
	return err.Error(), true
}

func (text) AdvisoryLock(string, bool) string { return "" }

// FindElsewhere: each attached file has separate tables of sqlfence.
func (text) FindElsewhere(string, string) string { return "" }

func (text) MayChangeSchema(string, bool) bool { return false }

func (text) PlaceInCatalogue(_, text string) string { return text }

func (text) Capabilities() *sqltext.Capabilities { return capabilities() }

var capabilities = sync.OnceValue(func() *sqltext.Capabilities {
	return &sqltext.Capabilities{
		Placeholder: '?',
		Numbers:     fact.Yes,
		OwnNumbers:  fact.No, // drivers differ in how they count those
		KeyText:     [2]string{"CAST(", " AS TEXT) COLLATE BINARY"},
		LocksFirst:  fact.No,
		Application: fact.No,

		Schema: "file", Path: "as main",

		CreateLedger:   sqltext.CreateLedger,
		LedgerState:    ledgerState,
		LedgerTriggers: ledgerTriggers(),
		Issuers:        issuers(),
		Vocabulary:     sqltext.Vocabulary(Text, "", alive),
	}
})

// alive returns true, because leases on SQLite have no sessions.
func alive(string) string { return Text.Bool(true) }
