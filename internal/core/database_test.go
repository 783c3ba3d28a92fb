package core

import (
	"slices"
	"strconv"
	"testing"

	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/dialect/mysql"
	"github.com/sqlfence/sqlfence/internal/dialect/postgres"
	"github.com/sqlfence/sqlfence/internal/dialect/sqlite"
)

// Each dialect has a database, so that this test fails for a new dialect without one.
func TestEachDialectHasADatabase(t *testing.T) {
	n := 0
	for d := dialect.Dialect(1); d.String() != dialect.Dialect(0).String(); d++ {
		n++
		if !IsDialect(d) {
			t.Errorf("%v has no database", d)
			continue
		}
		p, err := resolve(d, struct{}{})
		if err != nil || p.Dialect != d {
			t.Errorf("an unknown driver with %v: %v", d, err)
		}
		if !slices.Contains(dialectOf[:], d) {
			t.Errorf("no driver speaks %v", d)
		}
	}
	for _, got := range []int{len(dialect.All()), len(dialectOf) - 1} {
		if got != n {
			t.Errorf("%d dialects, and %d databases or servers", n, got)
		}
	}
	if IsDialect(0) {
		t.Error("no dialect has a database")
	}
}

// An error of the driver, without a server's code, may have left any state.
func TestLeftNothing(t *testing.T) {
	for _, tt := range []struct {
		name string
		db   *dberr.Classifier
		dberr.Failure
		want bool
	}{
		{"PostgreSQL, coded", postgres.Errors, dberr.Failure{Err: coded("23505")}, true},
		{"PostgreSQL, the driver's own", postgres.Errors, dberr.Failure{Err: plainError("can't read")}, false},
		{"PostgreSQL, in a transaction", postgres.Errors, dberr.Failure{Err: coded("23505"), InTx: true}, false},
		{"PostgreSQL, behind a savepoint", postgres.Errors, dberr.Failure{Err: coded("23505"), InTx: true, Saved: true}, true},
		{"SQLite, by the guard", sqlite.Errors, dberr.Failure{Err: plainError("bad JSON path"), ByGuard: true}, true},
		{"SQLite, unknown", sqlite.Errors, dberr.Failure{Err: plainError("?")}, false},
		{"SQLite, an error of the statement", sqlite.Errors, dberr.Failure{Err: sqliteCode(1)}, true},
		{"SQLite, OR FAIL", sqlite.Errors, dberr.Failure{Err: sqliteCode(1), Query: "UPDATE OR Fail books"}, false},
		{"SQLite, OR ROLLBACK", sqlite.Errors, dberr.Failure{Err: sqliteCode(1), Query: "UPDATE OR ROLLBACK books"}, false},
		{"MySQL, by the guard", mysql.Errors, dberr.Failure{Err: plainError("?"), ByGuard: true}, true},
		{"MySQL, numbered", mysql.Errors, dberr.Failure{Err: &numbered{Number: 1062}}, true},
		{"MySQL, in a transaction", mysql.Errors, dberr.Failure{Err: &numbered{Number: 1213}, InTx: true}, false},
		{"MySQL, the session's end", mysql.Errors, dberr.Failure{Err: &numbered{Number: 1053}}, false},
		{"MySQL, a packet that is too large", mysql.Errors, dberr.Failure{Err: &numbered{Number: 1153}}, true},
		{"MySQL, the driver's own", mysql.Errors, dberr.Failure{Err: plainError("invalid connection")}, false},
	} {
		if got := tt.db.LeftNothing(tt.Failure); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// numbered has the form of the MySQL driver's errors.
type numbered struct {
	Number  uint16
	Message string
}

func (e *numbered) Error() string { return "Error " + strconv.Itoa(int(e.Number)) }

type plainError string

func (e plainError) Error() string { return string(e) }

// coded is an error with a SQLSTATE.
type coded string

func (e coded) Error() string    { return "ERROR " + string(e) }
func (e coded) SQLState() string { return string(e) }

// sqliteCode is an error with an SQLite result code.
type sqliteCode int

func (e sqliteCode) Error() string { return "SQL logic error" }
func (e sqliteCode) Code() int     { return int(e) }
