// Package setuperr recognises the errors of a database that lacks a table, a column or a privilege that sqlfence needs.
// The result has the SQL to add the missing object.
package setuperr

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// A Table describes a statement's requirements on a table.
type Table struct {
	Name   string // as the database stores it
	SQL    string // the name as SQL, with its schema if that is known
	Create string // the statement that creates the table; empty for the application's tables

	// Privileges are the role's required privileges, as in GRANT; empty if sqlfence adds nothing that needs privileges.
	Privileges string

	Columns []Column // columns that sqlfence adds to statements

	Unalterable string // query for the remedy if ALTER TABLE can't add a column; no row for a table

	own       sqltext.Dialect // dialect of one of sqlfence's tables; nil for the application's tables
	elsewhere string          // query for the other schemas that have the table; empty if no other schema can
}

// Own returns a statement's requirements on one of sqlfence's tables, in schema or, if schema is empty, in the
// session's search path.
func Own(d sqltext.Dialect, schema, table, create, privileges string) Table {
	return Table{
		Name: table, SQL: sqltext.Place(d, schema, table), Create: sqltext.Place(d, schema, create),
		Privileges: privileges, own: d, elsewhere: d.FindElsewhere(schema, table),
	}
}

// Ledger returns a statement's requirements on a database's ledger, with the statement's privileges.
func Ledger(d sqltext.Dialect, schema, privileges string) Table {
	return Own(d, schema, sqltext.LedgerTable, d.Capabilities().CreateLedger, privileges)
}

// LedgerFunction returns what is missing if guards don't find the function that checks the ledger: the ledger's table,
// or just the function, which Setup installs with the table.
func LedgerFunction(d sqltext.Dialect, schema string, ask Asker) Missing {
	t, facts := Ledger(d, schema, ""), d.Capabilities()
	found, err := ask(sqltext.Place(d, schema, facts.FindLedgerSchema))
	if err == nil && len(found) == 1 && found[0] == "" {
		return t.missing(ask)
	}
	return Missing{
		Name: "function " + sqltext.LedgerFunction + " of table " + t.SQL,
		SQL:  sqltext.Place(d, schema, facts.CreateLedgerFunction),
		Remedy: "call Setup of package tokens, or run its LedgerFunction, as the owner of the table; if that was " +
			"done, the session's role needs USAGE on the table's schema and EXECUTE on the function, and row-level " +
			"security of the table must not apply to the role",
	}
}

// An Asker sends a query, and returns the only column of its rows. It returns an error if the query can't be sent, for
// example because an error has ended the transaction.
type Asker func(query string) ([]string, error)

// A Column is a column of a Table.
type Column struct {
	Name string // as the database stores it
	SQL  string // the name as SQL
	Type string // as in ALTER TABLE ... ADD COLUMN
}

// A Missing is a missing object, and the SQL that adds the object. If the SQL may be wrong, Remedy is the advice.
type Missing struct{ Name, SQL, Remedy string }

// Role stands in a GRANT for the role that the application connects as.
const Role = "<role>"

// Find returns what err reports as missing, if that is one of tables, a column or a privilege. It reads only codes and
// names, because PostgreSQL translates its messages. Before recommending to create one of sqlfence's tables, Find
// queries, with ask, whether another schema has the table.
func Find(err error, ask Asker, tables ...Table) (Missing, bool) {
	if err == nil {
		return Missing{}, false
	}
	message := err.Error()
	others := dberr.SQLState(err) == dberr.UndefinedColumn &&
		slices.ContainsFunc(tables, func(t Table) bool { return mentions(message, t.Name) })
	for _, t := range tables {
		if others && !mentions(message, t.Name) { // another of the tables may have a column of this name
			continue
		}
		if t.Create != "" && lacksTable(err, message, t.Name) {
			return t.missing(ask), true
		}
		if t.Privileges != "" && lacksPrivilege(err, message, t.Name) {
			return Missing{Name: "privileges on table " + t.SQL,
				SQL: "GRANT " + t.Privileges + " ON TABLE " + t.SQL + " TO " + roleOf(err, ask)}, true
		}
		for _, c := range t.Columns {
			if lacksColumn(err, message, t.Name, c.Name) {
				m := Missing{Name: "column " + c.SQL + " of table " + t.SQL,
					SQL: "ALTER TABLE " + t.SQL + " ADD COLUMN " + c.SQL + " " + c.Type}
				if found, failed := t.unalterable(ask); failed == nil && len(found) == 1 {
					m.SQL, m.Remedy = "", found[0]
				}
				return m, true
			}
		}
	}
	return Missing{}, false
}

func (t Table) unalterable(ask Asker) ([]string, error) {
	if t.Unalterable == "" {
		return nil, nil
	}
	return ask(t.Unalterable)
}

// roleOf returns, as SQL, the role of a session that lacks a privilege. It returns the placeholder [Role] in a
// transaction that the error has ended, where no query can be sent.
func roleOf(err error, ask Asker) string {
	if ask == nil {
		return Role
	}
	query, quote := "SELECT CURRENT_USER()", Account
	if _, ok, _ := dberr.PostgresError(err); ok {
		query, quote = "SELECT pg_catalog.quote_ident(CURRENT_USER)", func(name string) string { return name }
	}
	found, failed := ask(query)
	if failed != nil || len(found) != 1 || found[0] == "" {
		return Role
	}
	return quote(found[0])
}

// Account returns a MySQL account, in the form user@host of CURRENT_USER(), as SQL.
func Account(account string) string {
	at := strings.LastIndexByte(account, '@')
	if at < 0 {
		return Role
	}
	quote := func(part string) string { return "'" + strings.ReplaceAll(part, "'", "''") + "'" }
	return quote(account[:at]) + "@" + quote(account[at+1:])
}

// missing returns the remedy for a table that isn't found. If another schema has the ledger, the remedy isn't to create
// a second one: a token that is stale in one ledger would pass in the other.
func (t Table) missing(ask Asker) Missing {
	m := Missing{Name: "table " + t.SQL, SQL: t.Create}
	if t.elsewhere == "" {
		return m
	}
	schema, path := t.own.Capabilities().Schema, t.own.Capabilities().Path
	found, err := ask(t.elsewhere)
	switch {
	case err != nil:
		m.Remedy = fmt.Sprintf("look whether another %s has it, and name that (sqlfence.WithSchema, "+
			"sqlfence --schema); with a second one stale writes pass. If none has, run: %s", schema, t.Create)
	case len(found) > 0:
		m.Remedy = fmt.Sprintf("there is one in %s %s: name it (sqlfence.WithSchema, sqlfence --schema), or %s, "+
			"as with a second one stale writes pass; only if it is another application's, call Setup for one of your "+
			"own", schema, list(found), path)
	}
	return m
}

// Elsewhere returns the other schemas that have the table. It returns none if the query fails, or in a database where
// schemas usually belong to several applications: there the other table is likely another application's.
func (t Table) Elsewhere(ask Asker) []string {
	if t.own == nil || !t.own.Capabilities().Application.Is() {
		return nil
	}
	found, err := ask(t.elsewhere)
	if err != nil {
		return nil
	}
	return found
}

func list(names []string) string {
	const most = 5
	if len(names) > most {
		return strings.Join(names[:most], ", ") + " and others"
	}
	return strings.Join(names, ", ")
}

// Lacks reports whether err means that t doesn't exist.
func Lacks(err error, t Table) bool { return err != nil && lacksTable(err, err.Error(), t.Name) }

func lacksTable(err error, message, name string) bool {
	if _, ok, _ := dberr.PostgresError(err); ok {
		return dberr.LacksTable(err, name)
	}
	if code := dberr.SQLState(err); code != "" {
		return code == dberr.UndefinedTable && mentions(message, name)
	}
	before, rest, found := strings.Cut(message, "no such table: ")
	return found && !strings.Contains(before, "'") && named(rest, name) // after a quote the text is a value
}

// lacksColumn reports whether the column is missing. Only SQLite's message about an INSERT also names the table.
func lacksColumn(err error, message, table, name string) bool {
	if code := dberr.SQLState(err); code != "" {
		return code == dberr.UndefinedColumn && mentions(message, name)
	}
	if _, rest, found := strings.Cut(message, "no such column: "); found {
		return named(rest, name)
	}
	return strings.Contains(message, "table "+table+" has no column named "+name)
}

// lacksPrivilege reports whether a privilege on the table is missing. A refusal by row-level security has the same
// code, but isn't meant: its message has the table's name in double quotes.
func lacksPrivilege(err error, message, name string) bool {
	return dberr.SQLState(err) == dberr.InsufficientPrivilege && mentions(message, name) &&
		!strings.Contains(message, `"`+name+`"`)
}

// mentions reports whether a message contains name as a whole identifier. Vitess appends the statement to the server's
// message.
func mentions(message, name string) bool {
	for rest, _, _ := strings.Cut(message, " (errno "); ; {
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

// named reports whether a message begins with name, which may be qualified.
func named(message, name string) bool {
	word := message
	if i := strings.IndexFunc(message, func(r rune) bool { return r == ' ' || r == '\n' }); i >= 0 &&
		!strings.Contains(name, " ") {
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
