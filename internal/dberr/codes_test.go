package dberr

import (
	"errors"
	"fmt"
	"testing"
)

// The drivers of SQLite report the result code in three ways.
type (
	modernc int                                  // by a method
	ncruces int                                  // by a method of the code's type
	mattn   struct{ Code, ExtendedCode mattnNo } // in fields
	mattnNo int
)

type extended uint16

func (e modernc) Error() string          { return "modernc" }
func (e modernc) Code() int              { return int(e) }
func (e ncruces) Error() string          { return "ncruces" }
func (e ncruces) ExtendedCode() extended { return extended(e) }
func (e mattn) Error() string            { return "mattn" }

func TestPostgresCodes(t *testing.T) {
	for _, test := range []struct {
		state                                       string
		serialization, rolledBack, created, passing bool
	}{
		{"", false, false, false, false},
		{"4000", false, false, false, false},
		{SerializationFailure, true, true, false, true},
		{DeadlockDetected, false, true, false, true},
		{CompletionUnknown, false, false, false, true},
		{UniqueViolation, false, false, true, false},
		{DuplicateTable, false, false, true, false},
		{DuplicateObject, false, false, true, false},
		{InvalidText, false, false, false, false},
		{lockNotAvailable, false, false, false, true},
		{"55006", false, false, false, false},
		{"08006", false, false, false, true},
		{"53300", false, false, false, true},
		{"57P01", false, false, false, true},
		{"58030", false, false, false, true},
	} {
		err := fmt.Errorf("wrapped: %w", stateError(test.state))
		if SQLState(err) != test.state {
			t.Errorf("the state of %v is %q", err, SQLState(err))
		}
		got := [...]bool{IsSerialization(err), IsRolledBack(err), IsCreated(err), IsPassing(err)}
		if want := [...]bool{test.serialization, test.rolledBack, test.created, test.passing}; got != want {
			t.Errorf("%v: %v, want %v", err, got, want)
		}
	}
	if SQLState(nil) != "" || SQLState(errors.New("broken")) != "" {
		t.Error("an error without a state has one")
	}
}

func TestSQLiteCodes(t *testing.T) {
	for _, test := range []struct {
		code                int
		busy, left, aborted bool // as LeftNothing, and as LeftNothing of OR ABORT
	}{
		{1, false, true, true},
		{5, true, false, false},
		{517, true, false, false},
		{6, true, true, true},
		{262, true, true, true},
		{7, false, false, false},
		{13, false, false, false},
		{18, false, true, true},
		{23, false, true, true},
		{25, false, true, true},
		{19, false, false, false},
		{sqliteCheck, false, true, true},
		{sqliteDatatype, false, false, false},
		{sqliteNotNull, false, false, true},
		{sqliteKey, false, false, true},
		{sqliteUnique, false, false, true},
		{sqliteRowid, false, false, true},
	} {
		for _, err := range []error{modernc(test.code), ncruces(test.code), mattn{mattnNo(test.code & 0xff), mattnNo(test.code)}, &mattn{ExtendedCode: mattnNo(test.code)}} {
			err = errors.Join(errors.New("other"), fmt.Errorf("wrapped: %w", err))
			if code, ok := SQLiteCode(err); code != test.code || !ok {
				t.Errorf("%v: code %d, %v; want %d", err, code, ok, test.code)
			}
			got := [...]bool{IsBusy(err), LeftNothing(err, false), LeftNothing(err, true)}
			if want := [...]bool{test.busy, test.left, test.aborted}; got != want {
				t.Errorf("%v, code %d: %v, want %v", err, test.code, got, want)
			}
		}
	}
	if code, ok := SQLiteCode(mattn{Code: 5}); code != 5 || !ok {
		t.Errorf("a code that isn't extended: %d, %v", code, ok)
	}
	for _, err := range []error{nil, errors.New("broken"), stateError("40001")} {
		if _, ok := SQLiteCode(err); ok || IsBusy(err) || LeftNothing(err, true) {
			t.Errorf("%v has a code of SQLite", err)
		}
	}
}

// The errors of github.com/go-sql-driver/mysql.
type mysqlErr struct {
	Number   uint16
	SQLState [5]byte
	Message  string
}

func (e *mysqlErr) Error() string { return e.Message }

func TestMySQLCodes(t *testing.T) {
	for _, test := range []struct {
		number                                                           uint16
		own, state                                                       string
		serialization, rolledBack, created, passing, ended, isConstraint bool
	}{
		{1213, "40001", SerializationFailure, true, true, false, true, false, false},
		{1020, "HY000", SerializationFailure, true, true, false, true, false, false},
		{1206, "HY000", SerializationFailure, true, true, false, true, false, false},
		{8147, "HY000", SerializationFailure, true, true, false, true, false, false},
		{1205, "HY000", lockNotAvailable, false, false, false, true, false, false},
		{1040, "08004", "53300", false, false, false, true, false, false},
		{1047, "08S01", "57P03", false, false, false, true, true, false},
		{1180, "HY000", CompletionUnknown, false, false, false, true, true, false},
		{3100, "HY000", CompletionUnknown, false, false, false, true, true, false},
		{3101, "40000", SerializationFailure, true, true, false, true, false, false},
		{1053, "08S01", "57P01", false, false, false, true, true, false},
		{1152, "08S01", "08S01", false, false, false, true, true, false},
		{1153, "08S01", "54000", false, false, false, false, false, false},
		{1050, "42S01", DuplicateTable, false, false, true, false, false, false},
		{1061, "42000", DuplicateObject, false, false, true, false, false, false},
		{1062, "23000", UniqueViolation, false, false, true, false, false, true},
		{1048, "23000", "23000", false, false, false, false, false, true},
		{1142, "42000", InsufficientPrivilege, false, false, false, false, false, false},
		{1146, "42S02", UndefinedTable, false, false, false, false, false, false},
		{1054, "42S22", UndefinedColumn, false, false, false, false, false, false},
		{1064, "42000", "42000", false, false, false, false, false, false},
		{3819, "HY000", "23514", false, false, false, false, false, true},
		{4025, "23000", "23000", false, false, false, false, false, true},
		{1105, "", "HY000", false, false, false, false, false, false},
	} {
		e := &mysqlErr{Number: test.number, Message: "wrong"}
		copy(e.SQLState[:], test.own)
		err := fmt.Errorf("wrapped: %w", e)
		if number, ok := MySQLNumber(err); number != test.number || !ok || SQLState(err) != test.state {
			t.Errorf("%d: the number %d, %v, the state %q, want %q", test.number, number, ok, SQLState(err), test.state)
		}
		got := [...]bool{IsSerialization(err), IsRolledBack(err), IsCreated(err), IsPassing(err), IsSessionEnd(err), IsConstraint(err)}
		if want := [...]bool{test.serialization, test.rolledBack, test.created, test.passing, test.ended, test.isConstraint}; got != want {
			t.Errorf("%d: %v, want %v", test.number, got, want)
		}
	}
	commit := &mysqlErr{Number: 1180, Message: "Got error 149 - 'Lock deadlock; Retry transaction' during COMMIT"}
	if err := fmt.Errorf("wrapped: %w", commit); SQLState(err) != SerializationFailure {
		t.Errorf("%v: the state %q", err, SQLState(err))
	}
	twice := &mysqlErr{Number: 4140, Message: "The column `books`.`Fence` cannot be changed more than once"}
	if err := fmt.Errorf("wrapped: %w", twice); !IsAssignedTwice(err, "fence") || IsAssignedTwice(err, "price") || IsAssignedTwice(&mysqlErr{Number: 1064, Message: "`fence`"}, "fence") {
		t.Error("what is assigned twice isn't found")
	}
	for _, err := range []error{nil, errors.New("invalid connection"), modernc(5), stateError("40001"), &mattn{}} {
		if _, ok := MySQLNumber(err); ok {
			t.Errorf("%v has a number of MySQL's", err)
		}
	}
}

func TestWithByRule(t *testing.T) {
	for _, test := range []struct {
		err    error
		byRule bool
	}{
		{nil, false},
		{errors.New("WITH"), false},
		{textError{"0A000", "WITH kann hier nicht verwendet werden"}, true},
		{textError{"0A000", "with"}, false},
		{textError{"42601", "WITH"}, false},
	} {
		if IsWithByRule(test.err) != test.byRule {
			t.Errorf("%v: by a rule %v, want %v", test.err, !test.byRule, test.byRule)
		}
	}
}

type textError struct {
	stateError
	text string
}

func (e textError) Error() string { return e.text }
