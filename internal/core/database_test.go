package core

import (
	"strconv"
	"testing"

	"github.com/sqlfence/sqlfence/rewrite"
)

// Each dialect has its database, so that one which is added asks for it here.
func TestEachDialectHasADatabase(t *testing.T) {
	n := 0
	for d := rewrite.Dialect(1); d.String() != rewrite.Dialect(0).String(); d++ {
		n++
		db, ok := databaseOf(d)
		if !ok {
			t.Errorf("%v has no database", d)
			continue
		}
		if db.dialect() != d {
			t.Errorf("the database of %v speaks %v", d, db.dialect())
		}
		p, err := resolve(d, struct{}{})
		if err != nil || p.dialect() != d {
			t.Errorf("an unknown driver with %v: %v", d, err)
		}
	}
	if n != len(databases) {
		t.Errorf("%d dialects and %d databases", n, len(databases))
	}
	if db, ok := databaseOf(0); ok {
		t.Errorf("no dialect has the database %v", db)
	}
}

// A failure of the driver's own, without a code of the server's, may have left
// anything.
func TestLeftNothing(t *testing.T) {
	for _, tt := range []struct {
		name string
		db   database
		failure
		want bool
	}{
		{"PostgreSQL, coded", postgres{}, failure{err: coded("23505")}, true},
		{"PostgreSQL, the driver's own", postgres{}, failure{err: plainError("can't read")}, false},
		{"PostgreSQL, in a transaction", postgres{}, failure{err: coded("23505"), inTx: true}, false},
		{"PostgreSQL, behind a savepoint", postgres{}, failure{err: coded("23505"), inTx: true, saved: true}, true},
		{"SQLite, by the guard", sqlite{}, failure{err: plainError("bad JSON path"), byGuard: true}, true},
		{"SQLite, unknown", sqlite{}, failure{err: plainError("?")}, false},
		{"SQLite, an error of the statement", sqlite{}, failure{err: sqliteCode(1)}, true},
		{"SQLite, OR FAIL", sqlite{}, failure{err: sqliteCode(1), query: "UPDATE OR Fail books"}, false},
		{"SQLite, OR ROLLBACK", sqlite{}, failure{err: sqliteCode(1), query: "UPDATE OR ROLLBACK books"}, false},
		{"MySQL, by the guard", mysql{}, failure{err: plainError("?"), byGuard: true}, true},
		{"MySQL, numbered", mysql{}, failure{err: &numbered{Number: 1062}}, true},
		{"MySQL, in a transaction", mysql{}, failure{err: &numbered{Number: 1213}, inTx: true}, false},
		{"MySQL, the session's end", mysql{}, failure{err: &numbered{Number: 1053}}, false},
		{"MySQL, a packet that is too large", mysql{}, failure{err: &numbered{Number: 1153}}, true},
		{"MySQL, the driver's own", mysql{}, failure{err: plainError("invalid connection")}, false},
	} {
		if got := tt.db.leftNothing(tt.failure); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// numbered is as the driver's errors are.
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

// sqliteCode is an error with a code of SQLite's.
type sqliteCode int

func (e sqliteCode) Error() string { return "SQL logic error" }
func (e sqliteCode) Code() int     { return int(e) }
