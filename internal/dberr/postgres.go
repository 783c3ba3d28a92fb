// Package dberr reads the databases' error codes from the errors of all drivers, and repeats statements after
// temporary errors.
package dberr

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/sqlfence/sqlfence/internal/basedriver"
)

// SQLSTATEs that sqlfence depends on, in addition to whole classes. Source: PostgreSQL's documentation, appendix A.
const (
	FeatureNotSupported   = "0A000"
	ProtocolViolation     = "08P01"
	OutOfRange            = "22003"
	UniqueViolation       = "23505"
	InvalidText           = "22P02"
	NoActiveTransaction   = "25P01"
	InFailedTransaction   = "25P02"
	UnknownStatement      = "26000"
	SerializationFailure  = "40001"
	CompletionUnknown     = "40003"
	DeadlockDetected      = "40P01"
	DuplicateObject       = "42710"
	DuplicateTable        = "42P07"
	InsufficientPrivilege = "42501"
	UndefinedColumn       = "42703"
	UndefinedFunction     = "42883"
	UndefinedTable        = "42P01"
	UndefinedSchema       = "3F000"

	lockNotAvailable = "55P03"

	ConnectionClass   = "08"  // such as 08P01
	ConstraintClass   = "23"  // such as 23505
	InterventionClass = "57P" // such as 57P01, admin_shutdown
)

// SQLState returns the code in err's chain; empty for other errors and for nil. The errors of lib/pq and pgx have a
// method SQLState. MySQL errors in mysqlStates get PostgreSQL's equivalent code; other MySQL errors keep MySQL's code.
func SQLState(err error) string {
	if code, ok, _ := PostgresError(err); ok {
		return code
	}
	for _, e := range chain(err, nil) {
		if number, own, ok := basedriver.MySQLCode(e); ok {
			return mysqlState(number, own, e)
		}
	}
	return ""
}

// chain appends err and all wrapped errors.
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

// PostgresError returns the first error in err's chain with a method SQLState, such as an error of lib/pq or pgx, and
// its SQLSTATE.
func PostgresError(err error) (code string, ok bool, own error) {
	var coded interface {
		error
		SQLState() string
	}
	if errors.As(err, &coded) {
		return coded.SQLState(), true, coded
	}
	return "", false, nil
}

// IsTypeMismatch reports whether PostgreSQL refused a value because of its type.
func IsTypeMismatch(err error) bool {
	code, ok, _ := PostgresError(err)
	return ok && (code == "42804" || code == "42846") // datatype_mismatch, cannot_coerce
}

// IsTypeMismatchOf reports whether err names column, or a COALESCE, that the application's statement doesn't contain.
func IsTypeMismatchOf(err error, column, query string) bool {
	for _, word := range [...]string{`"` + column + `"`, "COALESCE"} {
		absent := !strings.Contains(strings.ToLower(query), strings.ToLower(strings.Trim(word, `"`)))
		if absent && strings.Contains(err.Error(), word) {
			return true
		}
	}
	return false
}

// NamesFunction reports whether PostgreSQL, in a message of any language, reports that a called function of this name
// doesn't exist. The error of a cast to regprocedure has the same code, but quotes the name; no quote precedes the
// name of a called function.
func NamesFunction(err error, name string) bool {
	code, _, own := PostgresError(err)
	if code != UndefinedFunction {
		return false
	}
	before, _, found := strings.Cut(own.Error(), name+"(")
	return found && !strings.ContainsAny(before, "\"'`«»‹›„“”‚‘’「」『』")
}

// LacksTable reports whether PostgreSQL, in a message of any language, reports that a table of this name doesn't exist
// in some schema. The name is the message's only quoted text. The error of a cast to regclass has the same code and
// form, and counts as well.
func LacksTable(err error, name string) bool {
	code, _, own := PostgresError(err)
	if code != UndefinedTable {
		return false
	}
	message := own.Error()
	isQuote := func(r rune) bool { return strings.ContainsRune("\"«»„“”", r) }
	first, last := strings.IndexFunc(message, isQuote), strings.LastIndexFunc(message, isQuote)
	if first == last {
		return false
	}
	_, size := utf8.DecodeRuneInString(message[first:])
	quoted := strings.TrimSpace(message[first+size : last])
	return quoted == name || strings.HasSuffix(quoted, "."+name)
}

// IsSerialization reports whether err is a serialization failure: the statement changed nothing because another
// transaction came first.
func IsSerialization(err error) bool { return SQLState(err) == SerializationFailure }

// IsRolledBack reports whether the server rolled back because of another transaction: a serialization failure or a
// deadlock.
func IsRolledBack(err error) bool {
	code := SQLState(err)
	return code == SerializationFailure || code == DeadlockDetected
}

// IsCreated reports whether a CREATE ... IF NOT EXISTS failed only because of a concurrent CREATE: PostgreSQL's IF NOT
// EXISTS doesn't prevent a collision.
func IsCreated(err error) bool {
	switch SQLState(err) {
	case UniqueViolation, DuplicateTable, DuplicateObject:
		return true
	}
	return false
}

// IsClosed reports whether the program has closed the sql.DB, so that nothing was sent. Package sql exports no value
// of this error.
func IsClosed(err error) bool {
	return err != nil && strings.HasSuffix(err.Error(), "sql: database is closed")
}

// IsSessionEnd reports whether the server or a pooler reports that the session ended, or that the statement's outcome
// is unknown. It returns false for a [ProtocolViolation], which may be due to the statement, or to a pooler that has
// lost its server: then the session has ended if the driver has closed the connection.
func IsSessionEnd(err error) bool {
	code := SQLState(err)
	return code != ProtocolViolation && (strings.HasPrefix(code, ConnectionClass) ||
		strings.HasPrefix(code, InterventionClass) || code == CompletionUnknown)
}

// IsCommitRolledBack reports whether a driver of PostgreSQL reports that a COMMIT rolled the transaction back because
// of an earlier error: pgx by the first of these texts, lib/pq by the second.
func IsCommitRolledBack(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "commit unexpectedly resulted in rollback") ||
		strings.Contains(err.Error(), "Could not complete operation in a failed transaction"))
}

// IsPassing reports whether a statement failed because of circumstances such as a deadlock, a timeout or a shutdown,
// and not because of its SQL.
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

// IsLockTimeout reports whether a statement changed nothing because its wait for a lock timed out. In MySQL the
// transaction may continue.
func IsLockTimeout(err error) bool { return SQLState(err) == lockNotAvailable }

// IsWithByRule reports whether err is PostgreSQL's error for a statement with WITH that a rule rewrites to several
// statements. PostgreSQL translates its messages, except keywords.
func IsWithByRule(err error) bool {
	return SQLState(err) == FeatureNotSupported && strings.Contains(err.Error(), "WITH")
}
