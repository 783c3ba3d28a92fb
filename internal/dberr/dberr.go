// Package dberr reads the databases' error codes, whichever driver reports them.
package dberr

import (
	"errors"
	"reflect"
)

// The codes that are told apart.
// Source: PostgreSQL's documentation, appendix A.
const (
	FeatureNotSupported   = "0A000"
	OutOfRange            = "22003"
	UniqueViolation       = "23505"
	InvalidText           = "22P02"
	NoActiveTransaction   = "25P01"
	SerializationFailure  = "40001"
	CompletionUnknown     = "40003"
	DeadlockDetected      = "40P01"
	DuplicateObject       = "42710"
	DuplicateTable        = "42P07"
	InsufficientPrivilege = "42501"
	UndefinedFunction     = "42883"

	lockNotAvailable = "55P03"

	ConnectionClass   = "08"  // such as 08P01
	InterventionClass = "57P" // such as 57P01, admin_shutdown
)

// SQLState returns the code in err's chain; empty for another error and for nil. lib/pq
// and pgx tell it by the same method.
func SQLState(err error) string {
	var coded interface{ SQLState() string }
	if errors.As(err, &coded) {
		return coded.SQLState()
	}
	return ""
}

// IsCreated reports whether a CREATE ... IF NOT EXISTS failed only because
// another process did the same at once: in PostgreSQL, IF NOT EXISTS doesn't keep
// the two from a collision.
func IsCreated(err error) bool {
	switch SQLState(err) {
	case UniqueViolation, DuplicateTable, DuplicateObject:
		return true
	}
	return false
}

// IsPassing reports whether PostgreSQL says that a statement failed for what was going
// on around it, such as a deadlock, a timeout or a shutdown, and not for what it says.
func IsPassing(err error) bool {
	code := SQLState(err)
	if len(code) != 5 {
		return false
	}
	switch code[:2] {
	case "08", "40", "53", "57", "58": // connection, rollback, resources, intervention, system
		return true
	}
	return code == lockNotAvailable
}

// The codes of SQLite that are told apart: a primary one stands in the lowest byte of
// an extended one.
// Source: https://sqlite.org/rescode.html
const (
	sqliteError      = 1
	sqliteLocked     = 6
	sqliteTooBig     = 18
	sqliteConstraint = 19
	sqliteAuth       = 23
	sqliteRange      = 25

	sqliteCheck    = sqliteConstraint | 1<<8
	sqliteNotNull  = sqliteConstraint | 5<<8
	sqliteKey      = sqliteConstraint | 6<<8
	sqliteUnique   = sqliteConstraint | 8<<8
	sqliteRowid    = sqliteConstraint | 10<<8
	sqliteDatatype = sqliteConstraint | 12<<8
)

// LeftNothing reports whether a statement that failed in SQLite with err has changed
// nothing, and left its transaction as it was; false where that isn't sure. A full disk
// may end the transaction; a broken constraint too, or leave the rows written before it,
// as the table declares or a trigger says, unless aborts tells that the statement says
// OR ABORT. Another OR clause of the statement's is the caller's part.
func LeftNothing(err error, aborts bool) bool {
	code, ok := SQLiteCode(err)
	if !ok {
		return false
	}
	switch code {
	case sqliteCheck, sqliteDatatype:
		return true
	case sqliteNotNull, sqliteKey, sqliteUnique, sqliteRowid:
		return aborts
	}
	switch code & 0xff {
	case sqliteError, sqliteLocked, sqliteTooBig, sqliteAuth, sqliteRange:
		return true
	}
	return false
}

// SQLiteCode returns SQLite's result code in err's chain, the extended one where the
// driver tells it, and whether there is one: modernc.org/sqlite tells it by a method,
// ncruces/go-sqlite3 by one of a type of its own, mattn/go-sqlite3 in a field, which is
// read by reflection since its package can't be imported here.
func SQLiteCode(err error) (code int, ok bool) {
	var coded interface{ Code() int }
	if errors.As(err, &coded) {
		return coded.Code(), true
	}
	for _, e := range chain(err, nil) {
		v := reflect.ValueOf(e)
		if m := v.MethodByName("ExtendedCode"); m.IsValid() && m.Type().NumIn() == 0 && m.Type().NumOut() == 1 && m.Type().Out(0).Kind() == reflect.Uint16 {
			return int(m.Call(nil)[0].Uint()), true
		}
		if v = reflect.Indirect(v); v.Kind() != reflect.Struct {
			continue
		}
		extended := v.FieldByName("ExtendedCode")
		if !extended.IsValid() || !extended.CanInt() {
			continue
		}
		if plain := v.FieldByName("Code"); extended.Int() == 0 && plain.IsValid() && plain.CanInt() {
			return int(plain.Int()), true
		}
		return int(extended.Int()), true
	}
	return 0, false
}

// chain appends err and all that it wraps.
func chain(err error, to []error) []error {
	if err == nil {
		return to
	}
	to = append(to, err)
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return chain(e.Unwrap(), to)
	case interface{ Unwrap() []error }:
		for _, wrapped := range e.Unwrap() {
			to = chain(wrapped, to)
		}
	}
	return to
}
