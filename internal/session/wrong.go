package session

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// A CachedFact is a kind of cached fact that decides how a guarded statement is written, and that may be outdated when
// the statement is executed. In that case the database returns an error, and applies nothing of the statement.
type CachedFact uint8

const (
	NoFact   CachedFact = iota
	Function            // the schema of the ledger's function
	Seals               // which tables are sealed
)

// Written describes a guarded statement that was sent.
type Written struct {
	Query string // the guarded SQL string

	PresentsToken bool // the statement presents a token to the seal of some table
	PresentsNone  bool // the statement presents no token to the seal of some table that may be sealed

	// MaySeal reports whether the statement writes to a table of this name that may be sealed.
	MaySeal func(name string) bool
}

// Wrong returns the cached fact that is outdated according to err, the error of a guarded statement. The caller must
// call Forget with it.
func (d *Database) Wrong(err error, w Written) CachedFact {
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

// Forget removes an outdated fact from the cache. The next connection that needs the fact queries it again.
func (d *Database) Forget(f CachedFact) {
	switch f {
	case Function:
		d.function.Store(nil)
	case Seals:
		d.sealsKnown.Store(false)
		d.seals.Clear()
	}
}

// misjudges reports whether err may mean that the statement presented a token to the seal of a table that isn't sealed,
// or presented none to a sealed table: the cached fact about seals is outdated then.
func (w *Written) misjudges(err error) bool {
	if !w.PresentsToken && !w.PresentsNone {
		return false
	}
	switch sqltext.ReadSealRefusal(err) {
	case sqltext.NotSealed:
		return w.PresentsToken
	case sqltext.NoToken:
		return w.PresentsNone && w.MaySeal(sqltext.SealOf(err))
	}
	return false
}

// missesFunction reports whether err, of a guard that called [sqltext.LedgerFunction], means that the function, the
// function that it calls, or its table can't be found or used, because it was dropped, renamed or not restored. The
// schema in err is compared with the function's last known schema, which another connection may have found.
func (d *Database) missesFunction(err error) bool {
	last := d.last.Load()
	if last == nil {
		return false
	}
	schema := *last
	either := func(is func(name string) bool) bool { return is(sqltext.LedgerFunction) || is(sqltext.LedgerTurns) }
	switch dberr.SQLState(err) {
	case dberr.UndefinedFunction:
		return either(func(name string) bool { return dberr.NamesFunction(err, name) })
	case dberr.UndefinedTable: // a table without a schema is one that the guard itself names
		return isAbout(err, schema+"."+sqltext.LedgerTable)
	case dberr.UndefinedSchema:
		return isAbout(err, schema)
	case dberr.InsufficientPrivilege:
		return either(func(name string) bool { return isAbout(err, name) }) || isAbout(err, "schema "+schema)
	}
	return false
}

// isAbout reports whether err contains name as a whole identifier. A longer name doesn't count: a user's value may
// contain it.
func isAbout(err error, name string) bool {
	_, behind, found := strings.Cut(err.Error(), name)
	next, _ := utf8.DecodeRuneInString(behind)
	return found && !unicode.IsLetter(next) && !unicode.IsDigit(next) && !strings.ContainsRune("_$.", next)
}
