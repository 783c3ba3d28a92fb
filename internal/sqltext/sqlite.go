package sqltext

import (
	"strconv"
	"strings"
	"time"

	"github.com/sqlfence/sqlfence/internal/dberr"
)

// SQLite runs in the process, and those who share a file share a machine: its clock is
// the server's. Within one statement it stands still, and it is read after the wait for
// the file's one writer.
var SQLite Dialect = sqlite{}

type sqlite struct{}

func (sqlite) Convert(x string, t Type) string { return convert(x, t) }

func (sqlite) CreateLedger() string { return createLedger }

// Quote writes backquotes: SQLite would take a name in double quotes for a text where
// there is no such column.
func (sqlite) Quote(name string) string {
	return "`" + strings.ReplaceAll(name, "`", "``") + "`"
}

func (sqlite) Text(s string) string { return quoteText(s) }

// Bool: true and false would be columns where a table has such.
func (sqlite) Bool(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

func (d sqlite) Placeholder(n int, t Type) string { return "?" + strconv.Itoa(n) + d.Cast(t) }

// Cast: SQLite goes by the argument itself.
func (sqlite) Cast(Type) string { return "" }

// Now: SQLite keeps the time in whole milliseconds, and julianday('now') is the floating
// number of days next to it, which is less than 0.03 ms off. Rounded it is the
// millisecond that SQLite has; cut off it would be the one before in half of all cases,
// and a lock over by one clock would be alive by the other.
func (sqlite) Now() string {
	return "CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)"
}

func (d sqlite) After(ticks string) string { return "(" + d.Now() + " + " + ticks + ")" }

func (sqlite) Ticks(d time.Duration) int64 { return ticks(d, time.Millisecond) }

// Micros: the cast keeps what is beyond all integers at the highest, rather than
// as a floating number. Nor has it the type that a column was declared with, which
// drivers go by.
func (sqlite) Micros(time string) string { return "CAST((" + time + ") * 1000 AS INTEGER)" }

// Raise is an error of the kind SQLITE_ERROR, with the text in the message.
func (d sqlite) Raise(parts ...string) string { return raise(d, parts) }

func (sqlite) Raising() (before, between, behind string) {
	return "json_extract('{}', ", " || ", ")"
}

func (sqlite) Raised(err error) (text string, ok bool) {
	if code, ok, own := dberr.SQLiteError(err); ok {
		return own.Error(), code == dberr.SQLiteGeneral
	}
	return err.Error(), true
}

func (sqlite) Turn(string, bool) string             { return "" }
func (sqlite) Turning(bool) (before, behind string) { return "", "" }

func (sqlite) LockPrivilege() string { return "" }

// Floor: SQLite has no timelines.
func (d sqlite) Floor() string { return start(d) }

// FindElsewhere: each attached file has its own.
func (sqlite) FindElsewhere(string, string) string { return "" }

func (sqlite) FindOwnHome() string { return "" }

func (sqlite) MayMove(string, bool) bool { return false }

func (sqlite) SchemaWords() (schema, path string) { return "file", "as main" }

func (sqlite) OneApplication() bool { return false }

func (sqlite) placeInCatalogue(_, text string) string { return text }

func (sqlite) mark() byte     { return '?' }
func (sqlite) numbered() bool { return false } // drivers differ in how they count those
func (sqlite) counts() bool   { return true }

func (sqlite) vocabulary() Pieces { return sqliteVocabulary }

var sqliteVocabulary = vocabulary(sqlite{})
