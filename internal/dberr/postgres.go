// Package dberr reads the databases' error codes, whichever driver reports them, and
// sends again what may then succeed.
package dberr

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/sqlfence/sqlfence/internal/basedriver"
)

// SQLSTATEs that the packages depend on, besides whole classes.
// Source: PostgreSQL's documentation, appendix A.
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
	SyntaxClass       = "42"  // such as 42P01; also what lacks a privilege
	InterventionClass = "57P" // such as 57P01, admin_shutdown
)

// SQLState returns the code in err's chain; empty for another error and for nil. lib/pq
// and pgx return it from the same method. The errors of MySQL that something depends on have the
// code of PostgreSQL that means the same, others their own.
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

// PostgresError returns the SQLSTATE of the error in err's chain that has one, as those of lib/pq
// and pgx have, and that error.
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

// IsTypeMismatch reports whether PostgreSQL refused a value for its type.
func IsTypeMismatch(err error) bool {
	code, ok, _ := PostgresError(err)
	return ok && (code == "42804" || code == "42846") // datatype_mismatch, cannot_coerce
}

// IsTypeMismatchOf reports whether that is about a column, or a COALESCE, which the statement as it was written hasn't.
func IsTypeMismatchOf(err error, column, query string) bool {
	for _, word := range [...]string{`"` + column + `"`, "COALESCE"} {
		absent := !strings.Contains(strings.ToLower(query), strings.ToLower(strings.Trim(word, `"`)))
		if absent && strings.Contains(err.Error(), word) {
			return true
		}
	}
	return false
}

// NamesFunction reports whether PostgreSQL says, in a message of any language, that there is no
// function of this name to be called. A value that is cast to regprocedure has the same code, but
// stands in quotes; none stand before what a statement calls.
func NamesFunction(err error, name string) bool {
	code, _, own := PostgresError(err)
	if code != UndefinedFunction {
		return false
	}
	before, _, found := strings.Cut(own.Error(), name+"(")
	return found && !strings.ContainsAny(before, "\"'`«»‹›„“”‚‘’「」『』")
}

// LacksTable reports whether PostgreSQL says, in a message of any language, that there is no table of
// this name, in whichever schema. What a value that is cast to regclass says has the same code, and stands
// in the message's only quotes, too.
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

// IsSerialization reports whether err is a serialization failure: the statement has
// changed nothing because another transaction came first.
func IsSerialization(err error) bool { return SQLState(err) == SerializationFailure }

// IsRolledBack reports whether the server says that it has rolled back for the sake of
// another transaction: a serialization failure or a deadlock.
func IsRolledBack(err error) bool {
	code := SQLState(err)
	return code == SerializationFailure || code == DeadlockDetected
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

// IsClosed reports whether the program has closed the database: package sql sends nothing then, and has no value to
// compare the error with.
func IsClosed(err error) bool {
	return err != nil && strings.HasSuffix(err.Error(), "sql: database is closed")
}

// IsSessionEnd reports whether the server, or a pooler in front of it, says that the
// session ended, or that it doesn't know what became of the statement: err tells nothing
// of that. A [ProtocolViolation] may be the statement's, or a pooler's that has lost
// its server; the session has ended if the driver has closed the connection.
func IsSessionEnd(err error) bool {
	code := SQLState(err)
	return code != ProtocolViolation && (strings.HasPrefix(code, ConnectionClass) ||
		strings.HasPrefix(code, InterventionClass) || code == CompletionUnknown)
}

// IsCommitRolledBack reports whether a driver of PostgreSQL says that a COMMIT has rolled the transaction back, which an
// error had ended before: pgx by the first of these texts, lib/pq by the second.
func IsCommitRolledBack(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "commit unexpectedly resulted in rollback") ||
		strings.Contains(err.Error(), "Could not complete operation in a failed transaction"))
}

// IsPassing reports whether the server says that a statement failed for what was going
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

// IsLockTimeout reports whether a statement has waited for a lock for as long as the session
// lets it, and has changed nothing. The transaction may go on in MySQL.
func IsLockTimeout(err error) bool { return SQLState(err) == lockNotAvailable }

// IsWithByRule reports whether err is PostgreSQL's for a statement with WITH that a rule turns into
// several. Its messages are translated, but for the keywords.
func IsWithByRule(err error) bool {
	return SQLState(err) == FeatureNotSupported && strings.Contains(err.Error(), "WITH")
}
