// Package dialect names the databases, and has all that is different from one to another. Each has a folder with the
// same files, and [All] has their values side by side; a server that shares a database's drivers is a file there.
package dialect

import (
	"fmt"
	"strings"

	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/dialect/mysql"
	"github.com/sqlfence/sqlfence/internal/dialect/postgres"
	"github.com/sqlfence/sqlfence/internal/dialect/sqlite"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/session"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// A Dialect is the SQL that a database speaks. The zero Dialect is none.
type Dialect uint8

// The dialects. MySQL is MariaDB's, too.
const (
	Postgres Dialect = iota + 1
	SQLite
	MySQL
)

// A Database is what is known of one. It is immutable.
type Database struct {
	Dialect Dialect
	Name    string // as its makers write it

	Text    sqltext.Dialect  // what sqlfence's own statements are written in
	Grammar *lex.Grammar     // how it is read
	Guard   *guard.Dialect   // what a guard says in it
	Session *session.Dialect // how its server is asked
	Answers *dberr.Answers   // how it answers
}

var databases = [...]Database{
	Postgres: {
		Dialect: Postgres, Name: "PostgreSQL", Text: postgres.Text, Grammar: postgres.Grammar,
		Guard: postgres.Guard, Session: postgres.Session, Answers: postgres.Answers,
	},
	SQLite: {
		Dialect: SQLite, Name: "SQLite", Text: sqlite.Text, Grammar: sqlite.Grammar,
		Guard: sqlite.Guard, Session: sqlite.Session, Answers: sqlite.Answers,
	},
	MySQL: {
		Dialect: MySQL, Name: "MySQL", Text: mysql.Text, Grammar: mysql.Grammar,
		Guard: mysql.Guard, Session: mysql.Session, Answers: mysql.Answers,
	},
}

// All returns the databases, in the order of their numbers.
func All() []Database { return databases[1:] }

// Of returns the database that speaks d.
func Of(d Dialect) (*Database, error) {
	if d != 0 && int(d) < len(databases) {
		return &databases[d], nil
	}
	var can []string
	for _, known := range All() {
		can = append(can, known.Name)
	}
	return nil, fmt.Errorf("%v can't be guarded yet, only %s", d, strings.Join(can, " and "))
}

// String returns the dialect's name as its makers write it.
func (d Dialect) String() string {
	if d != 0 && int(d) < len(databases) {
		return databases[d].Name
	}
	return "unknown dialect"
}

// IsQuestion reports whether a statement is one that a connection asks its server, for tests that look at all
// that is sent.
func IsQuestion(query string) bool {
	if session.IsCanary(query) {
		return true
	}
	for _, db := range All() {
		if query != "" && query == db.Session.Settings {
			return true
		}
	}
	return false
}
