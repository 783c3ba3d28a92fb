// Package setuperr recognises the errors of a database that isn't set up: it lacks a table, a
// column or a privilege that sqlfence needs. It writes the SQL that adds what is missing.
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

// A Table is what a statement needs of a table.
type Table struct {
	Name   string // as the database stores it
	SQL    string // the name as SQL, with its schema if that is known
	Create string // the statement that creates it; empty for one of the application's

	// Privileges are what the role needs, as in GRANT; empty where the error isn't about
	// what sqlfence adds.
	Privileges string

	Columns []Column // those that sqlfence adds to statements

	Unalterable string // a query for what to do where ALTER TABLE adds no column; no row for a table

	own       sqltext.Dialect // of one of sqlfence's own tables; nil for one of the application's
	elsewhere string          // a query for the other schemas that have it; empty if there can't be any
}

// Own returns what a statement needs of one of sqlfence's own tables, in a schema or, if that is empty, where
// the session finds it.
func Own(d sqltext.Dialect, schema, table, create, privileges string) Table {
	return Table{
		Name: table, SQL: sqltext.Place(d, schema, table), Create: sqltext.Place(d, schema, create),
		Privileges: privileges, own: d, elsewhere: d.FindElsewhere(schema, table),
	}
}

// Ledger returns the objects of the ledger of a database that a statement needs, with the
// privileges it needs of them.
func Ledger(d sqltext.Dialect, schema, privileges string) Table {
	return Own(d, schema, sqltext.LedgerTable, d.Facts().CreateLedger, privileges)
}

// LedgerFunction returns what is missing where no function asks the ledger for guards: the ledger's table, or the
// function that Setup installs beside it.
func LedgerFunction(d sqltext.Dialect, schema string, ask Asker) Missing {
	t, facts := Ledger(d, schema, ""), d.Facts()
	found, err := ask(sqltext.Place(d, schema, facts.FindOwnHome))
	if err == nil && len(found) == 1 && found[0] == "" {
		return t.missing(ask)
	}
	return Missing{
		Name: "function " + sqltext.LedgerFunction + " of table " + t.SQL,
		SQL:  sqltext.Place(d, schema, facts.CreateLedgerFunction),
		Remedy: "call Setup of package tokens, or run its LedgerFunction, as the owner of the table; if that was " +
			"done, the session's role needs USAGE on the table's schema and EXECUTE on the function",
	}
}

// An Asker returns the only column of a query's rows. One that can't ask, because an error has ended its
// transaction, returns an error.
type Asker func(query string) ([]string, error)

// A Column is a column of a Table.
type Column struct {
	Name string // as the database stores it
	SQL  string // the name as SQL
	Type string // as in ALTER TABLE ... ADD COLUMN
}

// A Missing is what is missing, and the SQL that adds it. Where that may be wrong, Remedy says what to do.
type Missing struct{ Name, SQL, Remedy string }

// Role stands in a GRANT for the role that the application connects as.
const Role = "<role>"

// Find returns what err says is missing of tables, and whether it is one of these. It
// reads codes and names only, as PostgreSQL translates its messages. Before it advises to create one of sqlfence's
// own tables it looks, by ask, whether another schema has it.
func Find(err error, ask Asker, tables ...Table) (Missing, bool) {
	if err == nil {
		return Missing{}, false
	}
	message := err.Error()
	others := dberr.SQLState(err) == dberr.UndefinedColumn &&
		slices.ContainsFunc(tables, func(t Table) bool { return mentions(message, t.Name) })
	for _, t := range tables {
		if others && !mentions(message, t.Name) { // another of them may have a column of this name
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

// roleOf returns the role of a session that was refused for want of a privilege, as SQL. It is Role in a transaction
// that the error has ended, as the session can't be asked there.
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

// Account returns an account of MySQL's, which CURRENT_USER() has as user@host, as SQL.
func Account(account string) string {
	at := strings.LastIndexByte(account, '@')
	if at < 0 {
		return Role
	}
	quote := func(part string) string { return "'" + strings.ReplaceAll(part, "'", "''") + "'" }
	return quote(account[:at]) + "@" + quote(account[at+1:])
}

// missing is what to do where the table isn't found. A second one splits what the first one keeps: tokens that
// one ledger takes for stale would pass the other.
func (t Table) missing(ask Asker) Missing {
	m := Missing{Name: "table " + t.SQL, SQL: t.Create}
	if t.elsewhere == "" {
		return m
	}
	schema, path := t.own.Facts().Schema, t.own.Facts().Path
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

// Elsewhere returns the other schemas that have the table, where those that a session sees are, as a rule, one
// application's. Without an answer there are none.
func (t Table) Elsewhere(ask Asker) []string {
	if t.own == nil || !t.own.Facts().Application.Is() {
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

// Lacks reports whether err says that there is no such table.
func Lacks(err error, t Table) bool { return err != nil && lacksTable(err, err.Error(), t.Name) }

func lacksTable(err error, message, name string) bool {
	if _, ok, _ := dberr.PostgresError(err); ok {
		return dberr.LacksTable(err, name)
	}
	if code := dberr.SQLState(err); code != "" {
		return code == dberr.UndefinedTable && mentions(message, name)
	}
	before, rest, found := strings.Cut(message, "no such table: ")
	return found && !strings.Contains(before, "'") && named(rest, name) // behind a quote it is a value
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
	return dberr.SQLState(err) == dberr.InsufficientPrivilege && mentions(message, name) &&
		!strings.Contains(message, `"`+name+`"`)
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
