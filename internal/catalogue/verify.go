// Package catalogue looks in a database's catalogue for faults of the registered tables, and for ways
// to write their rows without a token.
//
// It asks by queries alone. Their number doesn't depend on how many tables there are, and no writer
// waits for their locks.
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
	Registered      string // as registered
	Resource        string // the name of its tokens
	ClaimOf         string // the registered table with the claims that its writes present; empty for none
	Ledger          bool   // its tokens are compared with fencing_tokens
	FromTransaction bool   // the seal takes the tokens of transactions
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
	Table   string // as registered; empty if it is about the database
	Problem string
	Remedy  string
	SQL     string // what repairs it; empty where no statement does
}

// An Ask sends a query without arguments, and returns its rows. NULL is the empty text.
type Ask func(ctx context.Context, query string) ([][]string, error)

// Options of a run.
type Options struct {
	Rows      bool   // the rows of the tables are read for impossible stored tokens
	Recognise bool   // there are no tables: those with a fence column, or a seal, are looked for
	Schema    string // of the ledger by the options; empty for where the session finds it
	session.Facts
}

// run returns the findings, the worst first. It fails with the error of a query, or of ctx. A query that the role may
// not run is a Note.
func run(ctx context.Context, db Database, ask Ask, tables []Table, opts Options) (*look, error) {
	l := &look{ctx: ctx, ask: ask, db: &db, tables: tables, opts: opts}
	for _, step := range []func(*look){
		takePatterns, findRelations, askCatalogue, recognise, checkNames, checkColumns, checkKeys, checkLedger,
		checkStorage, checkPrivileges, checkSeals, checkLinks, checkCode, checkSettings, checkWriters, checkRows,
	} {
		if step(l); l.err != nil {
			return nil, l.err
		}
	}
	slices.SortStableFunc(l.found, func(a, b Finding) int { return cmp.Compare(b.Level, a.Level) })
	return l, nil
}

// A look is one run, with the facts read so far.
type look struct {
	ctx    context.Context
	ask    Ask
	db     *Database
	tables []Table
	opts   Options

	patterns    []Table
	own         []Table         // that no pattern stands for: registered by their names, or exempt
	inCatalogue map[string]bool // the names of all tables, as same has them, if there are patterns

	relations []*relation // with the name of a registered table, or of the ledger
	targets   []target
	ledgers   []*relation // the tables that guards read, and tables of that name in other schemas
	others    []*relation

	// What the catalogue has of the relations.
	keys     []key
	links    []link
	views    []view
	code     []code
	settings map[string]string
	version  string // of the server; known where tables are recognised

	hiddenViews int // that the role may not see the queries of

	schemas    []string // SQLite: the databases that are attached
	expression string   // MySQL: the column that has an index's expression

	found []Finding
	err   error // of the first query that has failed; no query is sent after it
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

// A question is a query of the catalogue, and what hears each of its rows.
type question struct {
	about, query string
	hear         func(l *look, row []string)
}

func askCatalogue(l *look) {
	l.settings = make(map[string]string)
	for _, q := range l.db.questions(l) {
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
	rows, err := l.ask(l.ctx, sqltext.Whole(l.db.Dialect, query))
	switch {
	case err == nil:
		return rows
	case isDenied(err) && l.ctx.Err() == nil:
		l.unseen(about, err.Error())
	default:
		l.err = fmt.Errorf("asking for %s: %w", about, err)
	}
	return nil
}

func (l *look) unseen(about, why string) {
	l.add(nil, Finding{Code: "unseen", Problem: "This role can't see " + about + ": " + why + "."})
}

// isDenied reports whether a query was refused for want of a privilege, or by SQLite's authorizer.
func isDenied(err error) bool {
	const sqliteAuth = 23
	code, ok := dberr.SQLiteCode(err)
	return ok && code&0xff == sqliteAuth || dberr.SQLState(err) == dberr.InsufficientPrivilege
}
