// Package dialect names the databases, and has all differences between databases. Each database has a folder with the
// same files, and [All] returns a [Database] for each folder. A server that shares a database's drivers, such as TiDB,
// is a file in that database's folder.
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

// The dialects. MySQL is also the dialect of MariaDB.
const (
	Postgres Dialect = iota + 1
	SQLite
	MySQL
)

// A Database holds the capabilities of a database. It is immutable.
type Database struct {
	Dialect Dialect
	Name    string // the database's name, as its makers write it

	Text    sqltext.Dialect   // builds sqlfence's own statements
	Grammar *lex.Grammar      // parses statements
	Guard   *guard.Dialect    // builds guards
	Session *session.Dialect  // queries the server
	Errors  *dberr.Classifier // classifies errors
}

var databases = [...]Database{
	Postgres: {
		Dialect: Postgres, Name: "PostgreSQL", Text: postgres.Text, Grammar: postgres.Grammar,
		Guard: postgres.Guard, Session: postgres.Session, Errors: postgres.Errors,
	},
	SQLite: {
		Dialect: SQLite, Name: "SQLite", Text: sqlite.Text, Grammar: sqlite.Grammar,
		Guard: sqlite.Guard, Session: sqlite.Session, Errors: sqlite.Errors,
	},
	MySQL: {
		Dialect: MySQL, Name: "MySQL", Text: mysql.Text, Grammar: mysql.Grammar,
		Guard: mysql.Guard, Session: mysql.Session, Errors: mysql.Errors,
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

// String returns the database's name, such as "PostgreSQL".
func (d Dialect) String() string {
	if d != 0 && int(d) < len(databases) {
		return databases[d].Name
	}
	return "unknown dialect"
}

// IsSettingsQuery reports whether query is sqlfence's own query of a server's settings, for tests that record all
// statements.
func IsSettingsQuery(query string) bool {
	if session.IsCanary(query) {
		return true
	}
	for _, db := range All() {
		if query != "" && (query == db.Session.Settings || query == sqltext.Whole(db.Text, db.Session.Version)) {
			return true
		}
	}
	return false
}
