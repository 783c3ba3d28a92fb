package session

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// A Fact is a cached fact that decides how a guarded statement is written, and that may be outdated when the statement
// is executed. Then the database returns an error, and applies nothing of the statement.
type Fact uint8

const (
	NoFact   Fact = iota
	Function      // the schema of the ledger's function
	Seals         // which tables are sealed
)

// Written is how a guarded statement was written.
type Written struct {
	Query string // as it was sent

	Proven   bool // some table that may be sealed was written as sealed
	Unproven bool // some table that may be sealed was written as not sealed

	// MaySeal reports whether the statement writes to a table of this name that may be sealed.
	MaySeal func(name string) bool
}

// Wrong returns the fact that err, of a guarded statement, disproves. The caller must forget the fact.
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

// Forget forgets an outdated fact. The next connection with a need for the fact queries it again.
func (d *Database) Forget(f Fact) {
	switch f {
	case Function:
		d.function.Store(nil)
	case Seals:
		d.sealsKnown.Store(false)
		d.seals.Clear()
	}
}

// misjudges reports whether err may mean that the statement was written as sealed for an unsealed table, or the
// reverse. Only the database knows.
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

// missesFunction reports whether err, of a guard that called the ledger's function, means that the function or its
// table can't be found or used, because it was dropped, renamed or not restored. Another connection may have missed or
// found the function before.
func (d *Database) missesFunction(err error) bool {
	last := d.last.Load()
	if last == nil {
		return false
	}
	schema := *last
	switch dberr.SQLState(err) {
	case dberr.UndefinedFunction:
		return dberr.NamesFunction(err, sqltext.LedgerFunction)
	case dberr.UndefinedTable: // without the schema the table is the guard's
		return isAbout(err, schema+"."+sqltext.LedgerTable)
	case dberr.UndefinedSchema:
		return isAbout(err, schema)
	case dberr.InsufficientPrivilege:
		return isAbout(err, sqltext.LedgerFunction) || isAbout(err, "schema "+schema)
	}
	return false
}

// isAbout reports whether err contains name as a whole identifier. A value that is cast to regclass may contain a
// longer name.
func isAbout(err error, name string) bool {
	_, behind, found := strings.Cut(err.Error(), name)
	next, _ := utf8.DecodeRuneInString(behind)
	return found && !unicode.IsLetter(next) && !unicode.IsDigit(next) && !strings.ContainsRune("_$.", next)
}
