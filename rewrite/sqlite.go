package rewrite

import (
	"slices"

	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/rewrite/internal/confirm"
	"github.com/sqlfence/sqlfence/rewrite/internal/read"
)

// sqlite is SQLite, where a column of any type holds values of all types.
type sqlite struct{ sqltext.Dialect }

func (sqlite) secondLook() *confirm.Dialect { return confirm.SQLite }

func (sqlite) grammar() *read.Grammar { return read.SQLite }

// searches: the tables of the schema.
func (sqlite) searches(s *search, tables []Table) {
	if len(tables) > 0 {
		for _, table := range schemaTables {
			s.find(table, noTable)
		}
	}
}

// maxInputs is the default of SQLITE_MAX_VARIABLE_NUMBER.
func (sqlite) maxInputs() int { return 32766 }

// maxAdded: SQLite looks for a number that isn't the highest so far in the list of those
// that were written, from its beginning.
func (sqlite) maxAdded() int { return 64 }

// maxNumbered: likewise, if the guard's numbers stand before the statement's.
func (sqlite) maxNumbered() int { return 64 }

func (sqlite) numbersInputs() bool { return true }

// integer: a text column would be compared as text without the cast.
func (sqlite) integer() (before, behind string) { return "COALESCE(CAST(", " AS INTEGER), 0)" }

func (sqlite) keyText() (before, behind string) { return "CAST(", " AS TEXT) COLLATE BINARY" }

func (sqlite) compares(c comparison) (before, between, behind string) {
	return "", [...]string{equal: " = ", less: " < ", lessOrEqual: " <= "}[c], ""
}

func (sqlite) greatest() (before, between, behind string) { return "max(", ", ", ")" }

func (sqlite) size() (before, behind string) { return "abs(", ")" }

func (sqlite) seals() bool { return true }

func (sqlite) deletesByMark() bool { return true }

// proveDelete: without the triggers the rows would be marked, and stay.
func (sqlite) proveDelete(w *writer) {
	w.write("CASE WHEN EXISTS (SELECT 1 FROM ", w.target.schema, "sqlite_master WHERE type = 'trigger' AND tbl_name = ")
	w.b.Text(w.rules.Name)
	w.write(" COLLATE NOCASE AND name GLOB '" + sqltext.SQLiteSealDeletes + "*') THEN 1 ELSE ")
	before, between, behind := w.dialect.Raising()
	w.write(before, "'"+sqltext.SealedMark+":'", between)
	w.rowToken()
	w.write(behind, " IS NOT NULL END")
}

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

func (sqlite) upsert() string { return "ON CONFLICT" }

func (d sqlite) withLedgerFunction(string) dialect { return d }

// ledgerCheck: a database file has one writer, so what is read there stays true to the
// end of the statement, and of its transaction. Without a unique index a name may have
// several rows, of which the highest counts. The ledger is in the written table's
// schema.
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
