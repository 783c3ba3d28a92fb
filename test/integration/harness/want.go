package harness

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence"
)

// WantStale fails the test unless err says in full which token was refused.
func WantStale(t testing.TB, err error, token, current int64) {
	t.Helper()
	var stale *sqlfence.StaleError
	if !errors.As(err, &stale) || !errors.Is(err, sqlfence.ErrStale) {
		t.Errorf("err = %v, want ErrStale", err)
		return
	}
	if stale.Table != "books" || stale.Token != (sqlfence.Token{Name: "books", Value: token}) || stale.Current != current {
		t.Errorf("%v: want table books, token %d, current %d", err, token, current)
	}
	if stale.Unwrap() == nil {
		t.Errorf("%v: the driver's own error is lost", err)
	}
}

// WantNotIssued fails the test unless err says in full which token nobody issued.
func WantNotIssued(t testing.TB, err error, token, current int64) {
	t.Helper()
	var refused *sqlfence.NotIssuedError
	if !errors.As(err, &refused) || !errors.Is(err, sqlfence.ErrNotIssued) || errors.Is(err, sqlfence.ErrStale) {
		t.Errorf("err = %v, want ErrNotIssued", err)
		return
	}
	if refused.Table != "books" || refused.Token != (sqlfence.Token{Name: "books", Value: token}) || refused.Current != current {
		t.Errorf("%v: want table books, token %d, current %d", err, token, current)
	}
	if refused.Unwrap() == nil || refused.Temporary() {
		t.Errorf("%v: the driver's own error is lost, or it counts as temporary", err)
	}
}

// WantError fails the test unless err is target.
func WantError(t testing.TB, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("err = %v, want %v", err, target)
	}
}

// SQLState returns PostgreSQL's code of an error, whichever driver reports it.
func SQLState(err error) string {
	var coded interface{ SQLState() string }
	if errors.As(err, &coded) {
		return coded.SQLState()
	}
	return ""
}

// RefusedByIsolation holds for what the database itself refuses at some levels: a row
// changed after the snapshot was taken, or in MySQL, which locks what is read at
// SERIALIZABLE, a deadlock.
func RefusedByIsolation(err error) bool {
	return SQLState(err) == "40001" || slices.Contains([]uint16{1020, 1213}, mysqlNumber(err))
}

func mysqlNumber(err error) uint16 {
	var numbered *mysql.MySQLError
	if errors.As(err, &numbered) {
		return numbered.Number
	}
	return 0
}

// ErrorText is the type and the text of an error, without what tells of the
// statement as it was sent: a place in it, or the text from there, and whether SQLite's ? has a number.
func ErrorText(err error) string {
	text := fmt.Sprintf("%T %[1]v", err)
	text = atColumn.ReplaceAllString(text, "")
	text = near.ReplaceAllString(text, "")
	return missing.ReplaceAllString(text, "missing argument $1")
}

var (
	near     = regexp.MustCompile(`(?s) near '.*' at line \d+`)
	atColumn = regexp.MustCompile(` at column \d+`)
	missing  = regexp.MustCompile(`missing (?:named argument|argument with index) "?(\d+)"?`)
)

// Sentinels that a statement can be refused with.
var Sentinels = []error{sqlfence.ErrStale, sqlfence.ErrNoFence, sqlfence.ErrOutOfScope, sqlfence.ErrUnguardable,
	sqlfence.ErrUnknownName, sqlfence.ErrTokenLimit, sqlfence.ErrConflict, sqlfence.ErrGone, sqlfence.ErrLocked}

// WantOnly fails the test unless err is target and no other sentinel.
func WantOnly(t *testing.T, err, target error) {
	t.Helper()
	WantError(t, err, target)
	for _, s := range Sentinels {
		if s != target && errors.Is(err, s) { // which of them?
			t.Errorf("%v is also %v", err, s)
		}
	}
}

// WantAssigned fails the test unless err says in full that the statement assigned
// a serial which doesn't raise the row's, current.
func WantAssigned(t testing.TB, err error, current int64) {
	t.Helper()
	var conflict *sqlfence.ConflictError
	if !errors.As(err, &conflict) || !errors.Is(err, sqlfence.ErrConflict) {
		t.Errorf("err = %v, want ErrConflict", err)
		return
	}
	if conflict.Table != "books" || conflict.Expected != 0 || conflict.Current != current || !conflict.Assigned || conflict.Temporary() {
		t.Errorf("%+v: want table books, current %d, assigned, not temporary", conflict, current)
	}
	if conflict.Unwrap() == nil || !strings.Contains(err.Error(), "leave the column out") {
		t.Errorf("%v: want the driver's own error behind it, and what to do", err)
	}
}

// WantVersions fails the test unless Versions returns want.
func (s *Shop) WantVersions(t testing.TB, want string) {
	t.Helper()
	if got := s.Versions(t); got != want {
		t.Errorf("books are %s, want %s", got, want)
	}
}

// WantConflict fails the test unless err says in full which versions differ.
func WantConflict(t testing.TB, err error, expected, current int64) {
	t.Helper()
	var conflict *sqlfence.ConflictError
	if !errors.As(err, &conflict) || !errors.Is(err, sqlfence.ErrConflict) {
		t.Errorf("err = %v, want ErrConflict", err)
		return
	}
	if conflict.Table != "books" || conflict.Expected != expected || conflict.Current != current || !conflict.Temporary() {
		t.Errorf("%v: want table books, expected %d, current %d, temporary", err, expected, current)
	}
	if conflict.Unwrap() == nil {
		t.Errorf("%v: the driver's own error is lost", err)
	}
}

// RefusedUnderLoad reports whether err is an expected error of a write under concurrent writes. A write with such an
// error has changed nothing.
func RefusedUnderLoad(err error) bool {
	if slices.Contains([]uint16{1020, 1062, 1205, 1213}, mysqlNumber(err)) { // the same of MySQL's
		return true
	}
	switch SQLState(err) {
	case "40001", "40P01", "23505": // serialization, deadlock, somebody else's INSERT
		return true
	case "":
		return errors.Is(err, sqlfence.ErrStale) || strings.Contains(err.Error(), "database is locked") || // SQLite's snapshot is too old
			strings.Contains(err.Error(), "UNIQUE constraint")
	}
	return errors.Is(err, sqlfence.ErrStale)
}
