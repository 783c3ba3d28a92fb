package session

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// A Fact is one that a guarded statement is written by, and that may not be so any more when the
// statement is executed. The database says so by an error, and has applied nothing of the statement.
type Fact uint8

const (
	NoFact   Fact = iota
	Function      // where the function is that asks the ledger
	Seals         // which tables are sealed
)

// Written is how a guarded statement was written.
type Written struct {
	Query string // as it was sent

	Proven   bool // some table that may be sealed was written as one that is
	Unproven bool // some table that may be sealed was written as one that isn't

	// MaySeal reports whether it writes to a table of this name that may be sealed.
	MaySeal func(name string) bool
}

// Wrong returns the fact that err, of a guarded statement, says is not so any more. It is to be forgotten.
func (d *Database) Wrong(err error, w Written) Fact {
	switch {
	case err == nil:
		return NoFact
	case strings.Contains(w.Query, sqltext.LedgerFunction+"(") && d.missesFunction(err):
		return Function
	case w.misjudges(err):
		return Seals
	}
	return NoFact
}

// Forget has a fact that was wrong asked for again, by the next connection that needs it.
func (d *Database) Forget(f Fact) {
	switch f {
	case Function:
		d.function.Store(nil)
	case Seals:
		d.sealsKnown.Store(false)
		d.seals.Clear()
	}
}

// misjudges reports whether err may be about a statement that was written for a sealed table which isn't,
// or the reverse. Only the database knows.
func (w *Written) misjudges(err error) bool {
	if !w.Proven && !w.Unproven {
		return false
	}
	switch sqltext.ReadSealRefusal(err) {
	case sqltext.NotSealed:
		return w.Proven
	case sqltext.NotProven:
		return w.Unproven && w.MaySeal(sqltext.SealOf(err))
	}
	return false
}

// missesFunction reports whether err, of a guard that called the function, says that it can't be
// called, nor the table that it names be found: it was dropped, renamed or restored
// without. Another connection may have missed or found the function meanwhile.
func (d *Database) missesFunction(err error) bool {
	last := d.last.Load()
	if last == nil {
		return false
	}
	schema := *last
	switch dberr.SQLState(err) {
	case dberr.UndefinedFunction:
		return dberr.NamesFunction(err, sqltext.LedgerFunction)
	case dberr.UndefinedTable: // without the schema it is the guard's own
		return isAbout(err, schema+"."+sqltext.LedgerTable)
	case dberr.UndefinedSchema:
		return isAbout(err, schema)
	case dberr.InsufficientPrivilege:
		return isAbout(err, sqltext.LedgerFunction) || isAbout(err, "schema "+schema)
	}
	return false
}

// isAbout reports whether err names something, and not something longer, which a value that is cast
// to regclass may name.
func isAbout(err error, name string) bool {
	_, behind, found := strings.Cut(err.Error(), name)
	next, _ := utf8.DecodeRuneInString(behind)
	return found && !unicode.IsLetter(next) && !unicode.IsDigit(next) && !strings.ContainsRune("_$.", next)
}
