// Package setuperr recognises the errors of a database that isn't set up: it lacks a table, a
// column or a privilege that sqlfence needs. It writes the SQL that adds what is missing.
package setuperr

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// A Table is what a statement needs of a table.
type Table struct {
	Name   string // as the database stores it
	SQL    string // the name as SQL, with its schema if that is known
	Create string // the statement that creates it; empty for one of the application's

	// Privileges are what the role needs, as in GRANT; empty where the error isn't about
	// what sqlfence adds.
	Privileges string

	Columns []Column // those that sqlfence adds to statements
}

// Ledger returns what a statement needs of the ledger of a database, of which it needs the
// privileges.
func Ledger(d sqltext.Dialect, privileges string) Table {
	return Table{Name: sqltext.LedgerTable, SQL: sqltext.LedgerTable, Create: d.CreateLedger(), Privileges: privileges}
}

// A Column is a column of a Table.
type Column struct {
	Name string // as the database stores it
	SQL  string // the name as SQL
	Type string // as in ALTER TABLE ... ADD COLUMN
}

// A Missing is what is missing, and the SQL that adds it.
type Missing struct{ Name, SQL string }

// Role stands in a GRANT for the role that the application connects as.
const Role = "<role>"

// Find returns what err says is missing of tables, and whether it is one of these. It
// reads codes and names only, as PostgreSQL translates its messages.
func Find(err error, tables ...Table) (Missing, bool) {
	if err == nil {
		return Missing{}, false
	}
	message := err.Error()
	others := dberr.SQLState(err) == dberr.UndefinedColumn && slices.ContainsFunc(tables, func(t Table) bool { return mentions(message, t.Name) })
	for _, t := range tables {
		if others && !mentions(message, t.Name) { // another of them may have a column of this name
			continue
		}
		if t.Create != "" && lacksTable(err, message, t.Name) {
			return Missing{"table " + t.SQL, t.Create}, true
		}
		if t.Privileges != "" && lacksPrivilege(err, message, t.Name) {
			return Missing{"privileges on table " + t.SQL, "GRANT " + t.Privileges + " ON TABLE " + t.SQL + " TO " + Role}, true
		}
		for _, c := range t.Columns {
			if lacksColumn(err, message, t.Name, c.Name) {
				return Missing{"column " + c.SQL + " of table " + t.SQL, "ALTER TABLE " + t.SQL + " ADD COLUMN " + c.SQL + " " + c.Type}, true
			}
		}
	}
	return Missing{}, false
}

func lacksTable(err error, message, name string) bool {
	if code := dberr.SQLState(err); code != "" {
		return code == dberr.UndefinedTable && mentions(message, name)
	}
	_, rest, found := strings.Cut(message, "no such table: ")
	return found && named(rest, name)
}

// lacksColumn looks for the table as well: a statement may name columns of others that
// are called alike.
func lacksColumn(err error, message, table, name string) bool {
	if code := dberr.SQLState(err); code != "" {
		return code == dberr.UndefinedColumn && mentions(message, name)
	}
	if _, rest, found := strings.Cut(message, "no such column: "); found {
		return named(rest, name)
	}
	return strings.Contains(message, "table "+table+" has no column named "+name)
}

// lacksPrivilege: with the same code row-level security refuses a row, and names the
// table in double quotes.
func lacksPrivilege(err error, message, name string) bool {
	return dberr.SQLState(err) == dberr.InsufficientPrivilege && mentions(message, name) && !strings.Contains(message, `"`+name+`"`)
}

// mentions reports whether a message has a name in it, not as a part of another.
func mentions(message, name string) bool {
	for rest := message; ; {
		before, after, found := strings.Cut(rest, name)
		if !found {
			return false
		}
		if !endsInName(before) && !beginsWithName(after) {
			return true
		}
		rest = after
	}
}

// named reports whether a message goes on with a name, which may be qualified.
func named(message, name string) bool {
	word := message
	if i := strings.IndexFunc(message, func(r rune) bool { return r == ' ' || r == '\n' }); i >= 0 && !strings.Contains(name, " ") {
		word = message[:i]
	}
	if i := strings.LastIndexByte(word, '.'); i >= 0 && !strings.Contains(name, ".") {
		word = word[i+1:]
	}
	return strings.EqualFold(word, name)
}

func endsInName(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return isOfName(r)
}

func beginsWithName(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return isOfName(r)
}

func isOfName(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
