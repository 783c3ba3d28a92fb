package parsers

import "strings"

// documented holds the beginnings of the reasons for which a valid statement may be refused: the guard can't express
// it, or the statement would undo the guard. The value reports whether a statement without a write to a registered
// table may also be refused for this reason.
var documented = map[string]bool{
	"OR ": false, // REPLACE, FAIL
	"which rows OR REPLACE deletes can't be told":           false,
	"it names the fence column":                             false,
	"it assigns the fence column":                           false,
	"it assigns the key column":                             false,
	"the rows' keys are unknown":                            false,
	"the row's key is unknown":                              false,
	"the fence column can't be added without a list":        false,
	"rows from this can't be guarded":                       false, // INSERT ... TABLE
	"rows that COPY sends can't be guarded":                 false,
	"a write can't be guarded behind":                       false, // PREPARE
	"WHERE CURRENT OF can't be guarded here":                false,
	"the guard can't know which rows LIMIT selects":         false,
	"it names a column twice":                               false, // PostgreSQL also refuses it, SQLite uses the first
	"this WHEN is never reached":                            false, // PostgreSQL also refuses it
	"a CTE named fencing_tokens":                            true,
	"only sqlfence's packages write to this table":          true,
	"it writes to a registered table and is one of several": true,  // also parts of a trigger
	"it writes to several registered tables, or twice":      false, // in one UPDATE or DELETE
	"which table this column is of can't be seen":           false, // where tables are joined
	"the conditions of NATURAL JOIN and USING":              false, // of a DELETE
	"the ledger is asked in the WHERE of each SELECT":       false, // WINDOW, ROLLUP and the like
	"the row's key is compared, as it is stored":            false, // if no later column has a plain value
	"the query reads the table that it writes":              false, // after ON DUPLICATE KEY UPDATE
	"an UPDATE with ORDER BY and a subquery":                false, // MariaDB may execute it on a copy of the rows
	"the ledger is asked before a value of the first row":   false, // of DEFAULT, functions and the like
	codeOfUser: true, // DO, CALL, PREPARE
	"this kind of statement on a registered table":                  true, // DDL
	"it can't be read: `\\'` is ambiguous":                          true,
	"it can't be read: it contains a NUL byte":                      true,
	"it can't be read: a backslash before a quote":                  true,
	"it can't be read: a quote in an optimizer hint":                true,
	"it can't be read: its meaning depends on the server's version": true,
	"it can't be read: what is in /*! */":                           true,
	"it can't be read: unexpected \"?\"":                            true, // ?WHERE, which servers refuse
	"it can't be read: a name spelled with UESCAPE":                 true,
	"it can't be read: it is not valid UTF-8":                       true,
	// Documented only if the statement has a nested write. Otherwise the word was only a name: see nested.
	nestedWrite: true,
}

const codeOfUser = "code that names a registered table in its text"

const nestedWrite = "a write in this place can't be guarded"

// isDocumented reports whether a refusal is documented. nested is set if the statement has a write, to any table,
// inside another statement.
func isDocumented(reason string, writes, nested bool) bool {
	if strings.HasPrefix(reason, nestedWrite) {
		return nested
	}
	for prefix, alsoReads := range documented {
		if strings.HasPrefix(reason, prefix) {
			return writes || alsoReads
		}
	}
	return false
}

// brief returns a reason without the advice after the semicolon.
func brief(reason string) string {
	reason, _, _ = strings.Cut(reason, ";")
	if len(reason) > 70 {
		reason = reason[:70]
	}
	return reason
}
