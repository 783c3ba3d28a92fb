package rewrite

import (
	"slices"

	my "github.com/sqlfence/sqlfence/internal/dialect/mysql"
	"github.com/sqlfence/sqlfence/internal/sql/confirm"
	"github.com/sqlfence/sqlfence/internal/sql/read"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// mysql is MySQL and MariaDB. They read the rows that a statement writes in their newest
// committed version, with a lock, at every isolation level; so a check may stand in WHERE as
// well as in SET. What it says doesn't depend on sql_mode, nor on the session's character set.
type mysql struct {
	sqltext.Dialect
	ledgerPlace
}

func (mysql) secondLook() *confirm.Dialect { return my.Confirm }

func (mysql) grammar() *read.Grammar { return my.Grammar }

// searches: PREPARE, EXECUTE IMMEDIATE and CALL run a text that may be put together in the
// database, and a block may do so. BINLOG changes rows of tables that it doesn't name.
func (mysql) searches(s *search, tables []Table) {
	if len(tables) == 0 {
		return
	}
	for _, word := range []string{"prepare", "immediate", "call", "binlog", "character_set_client", "character_set_results", "names", "charset",
		sqltext.SeenVariable, "schema", "database"} {
		s.findWord(word)
	}
	if slices.ContainsFunc(tables, func(t Table) bool { return t.locks() }) {
		s.findWord("timestamp")
	}
}

func (mysql) ground() *ground { return mysqlGround }

var mysqlGround = &ground{setting: mysqlSetting}

// maxInputs: they are counted in two bytes.
func (mysql) maxInputs() int { return 65535 }

func (d mysql) maxAdded() int { return d.maxInputs() }

func (mysql) maxNumbered() int { return 0 }

func (mysql) numbersInputs() bool { return false }

// size: a text would be compared as a floating number.
func (mysql) size() (before, behind string) {
	return "ABS(GREATEST(COALESCE(CAST(", " AS SIGNED), 0), -9223372036854775807))"
}

func (mysql) lacksComparison(error) bool { return false }

// keyText: most collations take "books" for "BOOKS", and all but a few for "books ".
func (mysql) keyText() (before, behind string) {
	return "CAST(CONVERT(", " USING utf8mb4) AS BINARY)"
}

func (mysql) claimText() (before, between, behind string) { return "CONCAT(", ", ':', ", ")" }

func (mysql) compares(c comparison) (before, between, behind string) {
	return "", [...]string{equal: " = ", less: " < ", lessOrEqual: " <= "}[c], ""
}

func (mysql) greatest() (before, between, behind string) { return "GREATEST(", ", ", ")" }

func (mysql) unsealable() string { return "" }

// proveDelete: a variable is the session's. NOW is when the statement began, also to its
// triggers. Of IS NOT NULL MySQL evaluates nothing that can't be NULL, which CONCAT can only be in a strict
// sql_mode.
func (mysql) proveDelete(w *writer) {
	w.write("LENGTH(@" + sqltext.DeleteProofVariable + " := CONCAT(")
	w.b.Text(w.rules.Name + ":")
	w.write(", NOW(6), ")
	w.b.Text(":")
	w.write(", ")
	w.provenTokens()
	w.write(")) > 0")
}

func (mysql) assigns() (before, between, behind string) { return "", " = ", "" }

func (mysql) setsInOrder() bool { return true }

func (mysql) notInteger() (before, behind string) { return "", "" }

// assigned: as an integer a higher number would be cut to the highest one, also where storing it
// is an error.
func (mysql) assigned() (before, between, behind string) {
	return "CAST(COALESCE((", "), ", ") AS DECIMAL(65))"
}

func (mysql) asInteger() string { return "" }

func (mysql) definesTables(string) bool { return false }

// isRowNumber: _rowid is another name for a primary key of one integer column.
func (mysql) isRowNumber(column string) bool { return column == "_rowid" }

// keyReturner makes an unsigned integer of what it returns.
func (mysql) keyReturner() string { return "last_insert_id" }

func (mysql) declaresConflicts() bool { return false }

func (mysql) readsWith() bool { return false }

func (mysql) skipsLocked() bool { return true }

func (mysql) writesInWith() bool { return false }

// checksBeyondLimit: the rows are sorted first, and their conditions evaluated for that. Without ORDER
// BY no row is read behind the last one.
func (mysql) checksBeyondLimit() bool { return true }

// sortsAside: if a subquery of an UPDATE reads the same table, be it through a view, MariaDB
// executes it as one of joined tables. Sorted by anything but a column of the first one, such as
// RAND(), it collects the rows in a temporary table. It evaluates SET after that, with the columns'
// values of the last row that it read.
func (mysql) sortsAside() bool { return true }

// rowCounter is MariaDB's. Without brackets it is a column.
func (mysql) rowCounter() string { return "rownum" }

// findsDatesByNull: in WHERE a DATE or DATETIME that is NOT NULL is NULL where it is 0000-00-00.
func (mysql) findsDatesByNull() bool { return true }

// tellsCases: by lower_case_table_names, which is 0 on Linux mostly.
func (mysql) tellsCases() bool { return true }

func (mysql) countsLastRows() bool { return true }

// guardsSeveral: a text may have several only with an option of the driver's, and a block has
// semicolons of its own.
func (mysql) guardsSeveral() bool { return false }

func (mysql) shadowsLedger(item string) bool { return item == ledgerTable }

func (mysql) ledgerInWhere() bool { return true }

func (mysql) ledgerInRow() bool { return true }

// readsNewRow: an empty sql_mode cuts '4x' to 4, and every one rounds 4.6 to 5.
func (mysql) readsNewRow() bool { return true }

func (mysql) upsertSeesQuery() bool { return true }

func (mysql) upsert(columns []string) string {
	const clause = "ON DUPLICATE KEY UPDATE"
	if len(columns) == 0 {
		return clause
	}
	return clause + " " + assigned(columns, func(column string) string { return "VALUES(" + column + ")" })
}

func (d mysql) withLedgerSchema(schema string) dialect {
	d.ledgerPlace = ledgerPlace(d.Quote(schema) + ".")
	return d
}

func (d mysql) withLedgerFunction(string) dialect { return d }

// ledgerCheck locks the ledger's row, which reads its newest committed version whatever the
// isolation level, and holds off the next token until this transaction ends. Without a unique index
// a name may have several rows: the highest counts. As a table without one of its own it is asked
// once, and before the first row: also where no row is met.
func (d mysql) ledgerCheck(w *writer, token int) {
	const newest = "COALESCE(MAX(CAST(" + ledgerTable + ".token AS SIGNED)), 0)"
	w.write("(SELECT newest FROM (SELECT (SELECT CASE WHEN ")
	w.compare(equal, token, newest)
	w.write(" THEN TRUE WHEN COUNT(*) = 0 THEN ")
	w.raiseCondition(markerUnknown, token, "COUNT(*)")
	w.write(" ELSE ")
	w.raiseCondition(markerLedger, token, newest)
	w.write(" END FROM ", d.ledgerName(), " WHERE "+ledgerTable+".name = ")
	w.field(token, fieldName)
	w.write(" LOCK IN SHARE MODE) AS newest) AS sqlfence_newest)")
}

func (d mysql) ledgerFirst(w *writer, token int) { d.ledgerCheck(w, token) }

// ledgerTail: ledgerFirst stands in the query.
func (mysql) ledgerTail(*writer) {}

func (mysql) seeksFirst() bool { return false }

// claimsCheck locks the rows and is asked once, as ledgerCheck.
func (mysql) claimsCheck(w *writer) {
	w.write("(SELECT newest FROM (SELECT (SELECT ")
	w.compareClaims(w.claimedColumns())
	w.write(" FROM ")
	w.claimedRows()
	w.write(" LOCK IN SHARE MODE) AS newest) AS sqlfence_newest)")
}

func (d mysql) claimsFirst(w *writer) { d.claimsCheck(w) }

func (mysql) claimsTail(*writer) {}

func (mysql) builtIn(function string) string { return function }

func (mysql) claimsBesideTarget() bool { return false }
