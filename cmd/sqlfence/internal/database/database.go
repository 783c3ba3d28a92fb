// Package database opens the databases of the command line, by the scheme of the data source name, and removes secrets
// from texts that people may see.
package database

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/sql/lang"
	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/lease"
)

// A Database is one kind of database.
type Database struct {
	Name    string   // the name for --dialect, and of the folder in package schema
	schemes []string // what its data source names begin with
	driver  string
	nowhere string // a data source name of the driver's that nothing is sent to
	Dialect sqlfence.Dialect
	Text    sqltext.Dialect

	// parse turns a data source name into the driver's, and returns its passwords, even with an error, so that no
	// message shows them. If create is set, a missing database may be created.
	parse func(dsn string, create bool) (driverDSN string, secrets []string, err error)

	// leases returns the options with which a release wakes waiters; nil if waiters poll.
	leases func(dsn string) []lease.Option

	// waits returns the query of [Source.Waits]; nil if the database doesn't show waiting sessions.
	waits func(home Source) string

	// delimiter ends a statement that contains semicolons, for the database's client; empty if the client finds the end
	// without a delimiter.
	delimiter string

	// LaterFiles maps each file of package schema that creates no table to a query that returns a row if the file was
	// applied.
	LaterFiles map[string]string
}

var all = []*Database{postgres, sqlite, mysqlServer}

// Names returns the names of all databases.
func Names() (names []string) {
	for _, d := range all {
		names = append(names, d.Name)
	}
	return names
}

// Find returns the database of a name.
func Find(name string) (*Database, error) {
	for _, d := range all {
		if d.Name == name {
			return d, nil
		}
	}
	return nil, fmt.Errorf("unknown dialect %q, want one of %s", name, strings.Join(Names(), ", "))
}

// A Source is a database that a data source name leads to.
type Source struct {
	*Database
	dsn     string
	Secrets []string // the passwords in it, in each form that an error may have

	Schema string // schema of sqlfence's tables, as the database stores it; empty if the search path finds them
	schema string // the schema as the user has written it
}

// In returns the source with sqlfence's own tables in a schema, an SQL identifier.
func (s Source) In(schema string) (Source, error) {
	home, name, err := lang.SpellName(s.Dialect, schema)
	if err == nil && home != "" {
		err = errors.New("a schema's name has one part")
	}
	s.Schema, s.schema = name, schema
	return s, err
}

// Place puts the schema before sqlfence's tables in a statement.
func (s Source) Place(statement string) string { return sqltext.Place(s.Text, s.Schema, statement) }

// Parse reads a data source name. Its errors contain no part of the name except the scheme. If create is set, a missing
// database file may be created.
func Parse(dsn string, create bool) (Source, error) {
	for _, d := range all {
		for _, scheme := range d.schemes {
			if strings.HasPrefix(dsn, scheme) {
				parsed, secrets, err := d.parse(dsn, create)
				return Source{Database: d, dsn: parsed, Secrets: secrets}, err
			}
		}
	}
	return Source{}, errors.New("the data source name has to begin with sqlite:, postgres:// or mysql://, as in " +
		"sqlite:books.db or postgres://user:password@host/database")
}

// Nowhere returns a source for commands that only print SQL. Nothing may be sent to it.
func (d *Database) Nowhere() Source { return Source{Database: d, dsn: d.nowhere} }

// Open opens the database, which is fenced if there are options or a schema.
func (s Source) Open(options ...sqlfence.Option) (*sql.DB, error) {
	if s.schema != "" {
		options = append(options, sqlfence.WithSchema(s.schema))
	}
	if len(options) == 0 {
		return sql.Open(s.driver, s.dsn)
	}
	return sqlfence.Open(s.driver, s.dsn, append(options, sqlfence.WithDialect(s.Dialect))...)
}

// Leases returns the leases of an open database.
func (s Source) Leases(db *sql.DB, options ...lease.Option) (*lease.Leases, error) {
	if s.leases != nil {
		options = append(options, s.leases(s.dsn)...)
	}
	return lease.New(db, options...)
}

// File returns a file of package schema for the database's own client. Goose's comment lines mark the beginning and end
// of statements that contain semicolons; a client needs delimiters instead.
func (d *Database) File(text string) string {
	const begin, end = "-- +goose StatementBegin\n", "-- +goose StatementEnd\n"
	head, rest, found := strings.Cut(text, begin)
	if d.delimiter == "" || !found {
		return text
	}
	return head + d.Script(strings.Split(strings.TrimSuffix(rest, end), end+begin))
}

// Script returns statements as a text for the database's own client, such as psql.
func (d *Database) Script(statements []string) string {
	var b strings.Builder
	for _, s := range statements {
		s = strings.TrimRight(s, "; \n\t")
		if d.delimiter != "" && strings.Contains(s, ";") {
			fmt.Fprintf(&b, "DELIMITER %s\n%s%[1]s\nDELIMITER ;\n", d.delimiter, s)
		} else {
			b.WriteString(s + ";\n")
		}
	}
	return b.String()
}
