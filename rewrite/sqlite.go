package rewrite

import (
	"slices"

	lite "github.com/sqlfence/sqlfence/internal/dialect/sqlite"
	"github.com/sqlfence/sqlfence/internal/sql/confirm"
	"github.com/sqlfence/sqlfence/internal/sql/read"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// sqlite is SQLite, where a column of any type holds values of all types.
type sqlite struct{ sqltext.Dialect }

func (sqlite) secondLook() *confirm.Dialect { return lite.Confirm }

func (sqlite) grammar() *read.Grammar { return lite.Grammar }

// searches: the tables of the schema.
func (sqlite) searches(s *search, tables []Table) {
	if len(tables) > 0 {
		for _, table := range schemaTables {
			s.find(table, noTable)
		}
	}
}

// ground: SQLite has neither functions nor schemas that a statement drops.
func (sqlite) ground() *ground { return sqliteGround }

var sqliteGround = new(ground)

// maxInputs is the default of SQLITE_MAX_VARIABLE_NUMBER.
func (sqlite) maxInputs() int { return 32766 }

// maxAdded: SQLite looks for a number that isn't the highest so far in the list of those
// that were written, from its beginning.
func (sqlite) maxAdded() int { return 64 }

// maxNumbered is the same if the guard's numbers stand before the statement's.
func (sqlite) maxNumbered() int { return 64 }

func (sqlite) numbersInputs() bool { return true }

// size: a text column would be compared as text without the cast.
func (sqlite) size() (before, behind string) {
	return "abs(max(COALESCE(CAST(", " AS INTEGER), 0), -9223372036854775807))"
}

func (sqlite) lacksComparison(error) bool { return false }

func (sqlite) keyText() (before, behind string) { return "CAST(", " AS TEXT) COLLATE BINARY" }

func (sqlite) claimText() (before, between, behind string) { return "", " || ':' || ", "" }

func (sqlite) compares(c comparison) (before, between, behind string) {
	return "", [...]string{equal: " = ", less: " < ", lessOrEqual: " <= "}[c], ""
}

func (sqlite) greatest() (before, between, behind string) { return "max(", ", ", ")" }

// unsealable: SQLite has no privileges, and a DELETE carries no proof that a trigger could see.
func (sqlite) unsealable() string {
	return "each program with the file can drop its triggers; leave Sealed out, and open the file through sqlfence alone"
}

func (sqlite) proveDelete(*writer) {}

func (sqlite) assigns() (before, between, behind string) { return "", " = ", "" }

func (sqlite) setsInOrder() bool { return false }

func (sqlite) notInteger() (before, behind string) {
	return "typeof(", ") NOT IN ('integer', 'null')"
}

// assigned: a cast to INTEGER alone would take '9e18' for 9.
func (sqlite) assigned() (before, between, behind string) {
	return "CAST(CAST(COALESCE((", "), ", ") AS NUMERIC) AS INTEGER)"
}

func (sqlite) asInteger() string { return "" }

// schemaTables can be written under PRAGMA writable_schema.
//
// Source: https://sqlite.org/schematab.html.
var schemaTables = []string{"sqlite_schema", "sqlite_master", "sqlite_temp_schema", "sqlite_temp_master"}

func (sqlite) definesTables(table string) bool { return slices.Contains(schemaTables, table) }

// isRowNumber: these are other names for an INTEGER PRIMARY KEY.
func (sqlite) isRowNumber(column string) bool {
	return column == "rowid" || column == "oid" || column == "_rowid_"
}

func (sqlite) keyReturner() string { return "" }

func (sqlite) declaresConflicts() bool { return true }

func (sqlite) readsWith() bool { return true }

func (sqlite) skipsLocked() bool { return false }

func (sqlite) writesInWith() bool { return false }

func (sqlite) checksBeyondLimit() bool { return false }

func (sqlite) sortsAside() bool { return false }

func (sqlite) rowCounter() string { return "" }

func (sqlite) findsDatesByNull() bool { return false }

func (sqlite) tellsCases() bool { return false }

func (sqlite) countsLastRows() bool { return true }

func (sqlite) guardsSeveral() bool { return true }

func (sqlite) shadowsLedger(item string) bool { return item == ledgerTable }

func (sqlite) ledgerInWhere() bool { return true }

func (sqlite) ledgerInRow() bool { return false }

func (sqlite) readsNewRow() bool { return false }

func (sqlite) upsertSeesQuery() bool { return false }

func (sqlite) upsert(columns []string) string { return onConflict(columns) }

// ledgerName: a file has a ledger of its own, for its tables.
func (sqlite) ledgerName() string { return ledgerTable }

func (d sqlite) withLedgerSchema(string) dialect { return d }

func (d sqlite) withLedgerFunction(string) dialect { return d }

// ledgerCheck: a database file has one writer, so what is read there stays true to the end of the
// statement, and of its transaction. Without a unique index a name may have several rows: the
// highest counts. The ledger is in the written table's schema.
func (sqlite) ledgerCheck(w *writer, token int) {
	const newest = "max(COALESCE(CAST(" + ledgerTable + ".token AS INTEGER), 0))"
	w.write("(SELECT CASE WHEN ")
	w.compare(equal, token, newest)
	w.write(" THEN 1 WHEN count(*) = 0 THEN ")
	w.raiseCondition(markerUnknown, token, "count(*)")
	w.write(" ELSE ")
	w.raiseCondition(markerLedger, token, newest)
	w.write(" END FROM ", w.target.schema, ledgerTable+" WHERE "+ledgerTable+".name = ")
	w.field(token, fieldName)
	w.write(")")
}

func (d sqlite) ledgerFirst(w *writer, token int) { d.ledgerCheck(w, token) }

// ledgerTail: a limit is evaluated first, and a negative one is none.
func (sqlite) ledgerTail(w *writer) {
	w.write(" LIMIT CASE WHEN ")
	w.check(setOf(ruleLedger))
	w.write(" THEN -1 END")
}

func (sqlite) seeksFirst() bool { return true }

func (sqlite) claimsCheck(w *writer) {
	w.write("(SELECT ")
	w.compareClaims(w.claimedColumns())
	w.write(" FROM ")
	w.claimedRows()
	w.write(")")
}

func (d sqlite) claimsFirst(w *writer) { d.claimsCheck(w) }

func (d sqlite) claimsTail(w *writer) { d.ledgerTail(w) }

func (sqlite) builtIn(function string) string { return function }

func (sqlite) claimsBesideTarget() bool { return true }
