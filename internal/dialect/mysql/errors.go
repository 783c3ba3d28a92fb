package mysql

import (
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/fact"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

// Errors classifies the errors of MySQL and MariaDB.
var Errors = &dberr.Classifier{
	Remote:        fact.Yes,
	CommitsAfter:  fact.Yes,
	HidesRollback: fact.No,
	Unlocks:       fact.Yes, // unless InnoDB had a part in the transaction before the savepoint
	BytesAreText:  fact.Yes,
	CountsRows:    fact.No,
	CountsArgs:    fact.Yes,
	TimeType:      "bigint", // microseconds since 1970

	IsResponse:  isResponse,
	KeepsTx:     keepsTx,
	EndsTx:      endsTx,
	IsOpen:      dberr.Never[error],
	LeftNothing: leftNothing,
	ChoosesKey:  choosesKey,
}

func isResponse(err error) bool {
	number, ok := dberr.MySQLNumber(err)
	return ok && (number == nodeNotReady || !dberr.IsSessionEnd(err))
}

// keepsTx reports whether the transaction may still be open after an error of COMMIT or ROLLBACK: so it is after
// the error of a Galera node outside of the majority, and may be after any error that reports no rollback.
func keepsTx(err error) bool { return !dberr.IsRolledBack(err) }

// endsTx reports whether a statement may commit the open transaction, as DDL does: it may unless its first word is one
// of keepingTx, or setEndsTx or analyzes decides. CALL and EXECUTE aren't in keepingTx, because they may run DDL. DO
// isn't, because it reports no error, not even a deadlock that has ended the transaction.
func endsTx(word, query string) bool {
	query = strings.ToLower(query)
	if isMultiStatement(query) {
		return true
	}
	if strings.EqualFold(word, "set") {
		return setEndsTx(query)
	}
	return !slices.Contains(keepingTx, strings.ToLower(word)) || analyzes(query)
}

// setEndsTx reports whether a SET may commit the open transaction; true in doubt. SET STATEMENT surely keeps the
// transaction open only if its statement reads or writes rows.
//
//	SET STATEMENT variable = x, ... FOR statement
//	SET {DEFAULT ROLE | PASSWORD | RESOURCE GROUP} ...
func setEndsTx(query string) bool {
	has := func(word string) bool { return strings.Contains(query, word) }
	if has("autocommit") || has("password") {
		return true
	}
	if !has("statement") && !has("role") && !has("resource") {
		return false
	}
	tokens, fault := lex.Scan(Lex, query, lex.EscapesUnknown, nil)
	if fault != nil {
		return true
	}
	if !tokens[1].IsWord(query, "statement") {
		return tokens[1].IsWord(query, "default", "resource")
	}
	t := &lex.Scanned{Src: query, Tokens: tokens, Rules: Lex}
	for i := 2; i < len(tokens); i = t.Skip(i) {
		if tokens[i].IsWord(query, "for") {
			return !beginsWithRows(query, tokens[i+1:])
		}
	}
	return true
}

// beginsWithRows reports whether a statement, after opening brackets, begins with a word for reading or writing rows.
func beginsWithRows(query string, tokens []lex.Token) bool {
	for tokens[0].Is('(') {
		tokens = tokens[1:]
	}
	return tokens[0].IsWord(query, "select", "insert", "update", "delete", "replace", "with", "values")
}

// analyzes reports whether query is an EXPLAIN ANALYZE of a statement that may commit; true in doubt. On TiDB, EXPLAIN
// ANALYZE executes ALTER TABLE and IMPORT INTO.
func analyzes(query string) bool {
	if !strings.Contains(query, "analyze") {
		return false
	}
	tokens, fault := lex.Scan(Lex, query, lex.EscapesUnknown, nil)
	if fault != nil {
		return true
	}
	if !tokens[0].IsWord(query, "explain", "describe", "desc") || !tokens[1].IsWord(query, "analyze") {
		return false
	}
	rest := tokens[2:]
	if rest[0].IsWord(query, "format") { // = and a name follow
		rest = rest[min(3, len(rest)-1):]
	}
	return !beginsWithRows(query, rest)
}

// isMultiStatement reports whether query is a multi-statement string; true in doubt.
func isMultiStatement(query string) bool {
	if strings.IndexByte(query, ';') < 0 {
		return false
	}
	tokens, fault := lex.Scan(Lex, query, lex.EscapesUnknown, nil)
	if fault != nil {
		return true
	}
	t := &lex.Scanned{Src: query, Tokens: tokens, Rules: Lex}
	return !t.StatementFrom(t.StatementFrom(0).Hi).Empty()
}

var keepingTx = []string{"select", "insert", "update", "delete", "replace", "with", "values", "show", "explain",
	"describe", "desc", "use", "handler", "savepoint", "release", "rollback", "commit"}

// choosesKey reports whether the server may store another key for a new row than this one, so that no token covers the
// row: in an AUTO_INCREMENT column, 0 means the next number, and an empty text means 0 unless sql_mode is strict.
func choosesKey(key string) bool { return key == "0" || key == "" }

// leftNothing reports whether a failed statement has changed nothing, so that its transaction can continue. A deadlock
// and some other errors roll the transaction back. In a transaction only a guard's error, and errors about a missing
// column, table or privilege, are known not to.
func leftNothing(f dberr.Failure) bool {
	if f.ByGuard {
		return true
	}
	if _, ok := dberr.MySQLNumber(f.Err); !ok || dberr.IsSessionEnd(f.Err) {
		return false
	}
	switch dberr.SQLState(f.Err) {
	case dberr.UndefinedColumn, dberr.UndefinedTable, dberr.InsufficientPrivilege:
		return true
	}
	return !f.InTx
}
