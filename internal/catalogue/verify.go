// Package catalogue looks in a database's catalogue for faults of the registered tables, and for ways
// to write their rows without a token.
//
// It sends only queries, which don't block writers. Except for the queries about rows, their number doesn't depend on
// the number of tables.
package catalogue

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/session"
	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/rewrite"
)

// A Table is a registered table, with its rules by names as the database stores them.
type Table struct {
	Registered      string // the table's name as registered
	Resource        string // the name of its tokens
	ClaimOf         string // the registered table with the claims that the table's writes present; or empty
	Ledger          bool   // the table's tokens are compared with fencing_tokens
	FromTransaction bool   // the seal accepts the tokens of a transaction
	rewrite.Table
}

// The levels of findings.
const (
	Note    = slog.LevelInfo
	Warning = slog.LevelWarn
	Fault   = slog.LevelError
)

// A Finding is something wrong, or worth knowing.
type Finding struct {
	Level   slog.Level
	Code    string // see Remedies
	Table   string // the table's name as registered; empty if the finding is about the database
	Problem string
	Remedy  string
	SQL     string // a statement that repairs it; empty if no statement does
}

// A Query sends a query without arguments, and returns its rows. NULL is the empty text.
type Query func(ctx context.Context, query string) ([][]string, error)

// Options of a run.
type Options struct {
	Rows      bool   // read the rows of the tables, and report impossible stored tokens
	Recognise bool   // no tables are registered: look for tables with a fence column or a seal
	Schema    string // the schema of the ledger by the options; empty if the session's search path finds it
	session.Capabilities
}

// run returns the findings, the worst first. It fails with the error of a query, or of ctx. For a query that the role
// may not run it adds a finding at the level Note.
func run(ctx context.Context, db Database, ask Query, tables []Table, opts Options) (*look, error) {
	l := &look{ctx: ctx, query: ask, db: &db, tables: tables, opts: opts}
	for _, step := range []func(*look){
		takePatterns, findRelations, queryCatalogue, recognise, checkNames, checkColumns, checkKeys, checkLedger,
		checkStorage, checkPrivileges, checkSeals, checkLinks, checkCode, checkSettings, checkWriters, checkRows,
	} {
		if step(l); l.err != nil {
			return nil, l.err
		}
	}
	slices.SortStableFunc(l.found, func(a, b Finding) int { return cmp.Compare(b.Level, a.Level) })
	return l, nil
}

// A look is one run of the checks, with the facts that it has read so far.
type look struct {
	ctx    context.Context
	query  Query
	db     *Database
	tables []Table
	opts   Options

	patterns    []Table
	own         []Table         // tables that no pattern covers, because they are registered by name or exempt
	inCatalogue map[string]bool // the names of all tables, normalised by same, if there are patterns

	relations []*relation // relations with the name of a registered table, or of the ledger
	targets   []target
	ledgers   []*relation // the tables that guards read, and tables of that name in other schemas
	others    []*relation

	// What the database's catalogue contains about the relations.
	keys     []key
	links    []link
	views    []view
	code     []code
	settings map[string]string
	version  string // the server's version; set if Recognise is

	hiddenViews int // number of views with queries that the role can't see

	schemas    []string // SQLite: the attached databases
	expression string   // MySQL: the name of the catalogue's column with the expressions of indexes

	found []Finding
	err   error // the error of the first query that failed; no query is sent after it
}

// A target is a registered table with its relation in the database.
type target struct {
	*Table
	rel *relation
}

// add adds a finding about a table. A finding without a remedy gets the remedy of its code.
func (l *look) add(t *Table, f Finding) {
	if t != nil {
		f.Table = t.Registered
	}
	f.Remedy = cmp.Or(f.Remedy, Remedies[f.Code])
	l.found = append(l.found, f)
}

// A query is a query of the catalogue, and what hears each of its rows.
type query struct {
	about, query string
	hear         func(l *look, row []string)
}

func queryCatalogue(l *look) {
	l.settings = make(map[string]string)
	for _, q := range l.db.queries(l) {
		for _, row := range l.rows(q.about, q.query) {
			q.hear(l, row)
		}
	}
}

// rows sends a query. If the role may not run the query, there are no rows, and a Note reports the gap.
func (l *look) rows(about, query string) [][]string {
	if l.err != nil {
		return nil
	}
	rows, err := l.query(l.ctx, sqltext.Whole(l.db.Dialect, query))
	switch {
	case err == nil:
		return rows
	case isDenied(err) && l.ctx.Err() == nil:
		l.noteDenied(about, err.Error())
	default:
		l.err = fmt.Errorf("asking for %s: %w", about, err)
	}
	return nil
}

func (l *look) noteDenied(about, why string) {
	l.add(nil, Finding{Code: "unseen", Problem: "This role can't see " + about + ": " + why + "."})
}

// isDenied reports whether a query was refused for want of a privilege, or by SQLite's authorizer.
func isDenied(err error) bool {
	const sqliteAuth = 23
	code, ok := dberr.SQLiteCode(err)
	return ok && code&0xff == sqliteAuth || dberr.SQLState(err) == dberr.InsufficientPrivilege
}
