package dberr

import (
	"errors"

	"github.com/sqlfence/sqlfence/internal/basedriver"
)

// SQLite's result codes that sqlfence depends on. The lowest byte of an extended code is the primary code. Source:
// https://sqlite.org/rescode.html
const (
	SQLiteGeneral    = 1
	sqliteBusy       = 5
	sqliteLocked     = 6
	sqliteIO         = 10
	sqliteTooBig     = 18
	sqliteConstraint = 19
	sqliteAuth       = 23
	sqliteRange      = 25

	sqlitePrimary = 0xff

	sqliteCheck    = sqliteConstraint | 1<<8
	sqliteNotNull  = sqliteConstraint | 5<<8
	sqliteKey      = sqliteConstraint | 6<<8
	sqliteUnique   = sqliteConstraint | 8<<8
	sqliteRowid    = sqliteConstraint | 10<<8
	sqliteDatatype = sqliteConstraint | 12<<8
)

// LeftNothing reports whether a statement that failed in SQLite with err changed neither data nor its transaction;
// false in doubt. A full disk may end the transaction. A constraint violation may end the transaction or keep the rows
// written so far, depending on the table or a trigger, unless aborts reports that the statement has OR ABORT. The
// caller must check for the other OR clauses, such as OR FAIL. In a transaction a value of the wrong type for a STRICT
// table may keep the rows written so far, even under OR ABORT.
func LeftNothing(err error, aborts bool) bool {
	code, ok := SQLiteCode(err)
	if !ok {
		return false
	}
	switch code {
	case sqliteCheck:
		return true
	case sqliteNotNull, sqliteKey, sqliteUnique, sqliteRowid:
		return aborts
	}
	switch code & sqlitePrimary {
	case SQLiteGeneral, sqliteLocked, sqliteTooBig, sqliteAuth, sqliteRange:
		return true
	}
	return false
}

// IsBusy reports whether err is SQLITE_BUSY or SQLITE_LOCKED, plain or extended (such as
// BUSY_SNAPSHOT, 517): another connection, or another statement, has the file or the table.
func IsBusy(err error) bool {
	code, ok := SQLiteCode(err)
	return ok && (code&sqlitePrimary == sqliteBusy || code&sqlitePrimary == sqliteLocked)
}

// IsIO reports whether err is SQLITE_IOERR, plain or extended.
func IsIO(err error) bool {
	code, ok := SQLiteCode(err)
	return ok && code&sqlitePrimary == sqliteIO
}

// SQLiteCode returns SQLite's result code in err's chain, extended if the driver has the extended code; ok is false if
// there is none.
func SQLiteCode(err error) (code int, ok bool) {
	code, ok, _ = sqliteErrorOf(err)
	return code, ok
}

// SQLiteError returns the first SQLite error in err's chain, and its primary code.
func SQLiteError(err error) (primary int, ok bool, own error) {
	code, ok, own := sqliteErrorOf(err)
	return code & sqlitePrimary, ok, own
}

// sqliteErrorOf finds a SQLite error in err's chain. Errors of modernc.org/sqlite have a method Code.
func sqliteErrorOf(err error) (code int, ok bool, own error) {
	var coded interface {
		error
		Code() int
	}
	if errors.As(err, &coded) {
		return coded.Code(), true, coded
	}
	for _, e := range chain(err, nil) {
		if code, ok := basedriver.SQLiteCode(e); ok {
			return code, true, e
		}
	}
	return 0, false, nil
}
