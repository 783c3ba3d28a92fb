package catalogue

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/internal/core"
	"github.com/sqlfence/sqlfence/internal/fenced"
	"github.com/sqlfence/sqlfence/rewrite"
)

// recognisedColumn is the name of a fence column that makes a table known without a registration.
const recognisedColumn = "fence_token"

// A Survey holds the findings about a database.
type Survey struct {
	Findings      []Finding
	Version       string            // the version string that the server reports
	Ledger        string            // the name of the ledger that guards read; empty if there is no ledger
	HidesTriggers bool              // the role can't see which triggers the ledger has
	Tables        []string          // the checked tables, in the order of their names
	Settings      map[string]string // the values of the settings that findings are about, by name
}

// SurveyOf checks the tables that a fenced database registers, or, if it registers none, all tables with a column
// fence_token. It also reads the tokens stored in the rows.
func SurveyOf(ctx context.Context, db *sql.DB) (found Survey, err error) {
	err = onConn(ctx, db, func(s *core.Settings, l core.ConnAdapter) error {
		found, err = Connection(ctx, s, l, true)
		return err
	})
	if err != nil {
		err = fmt.Errorf("sqlfence: verify: %w", err)
	}
	return found, err
}

// onConn calls f with a connection of a fenced database.
func onConn(ctx context.Context, db *sql.DB, f func(*core.Settings, core.ConnAdapter) error) error {
	c, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	return c.Raw(func(conn any) error {
		over, ok := conn.(fenced.Conn)
		if !ok {
			return fmt.Errorf("%w: the connection is a %T", core.ErrInvalid, conn)
		}
		return f(over.Fenced())
	})
}

// Connection is [SurveyOf] over one connection. If rows is false, it doesn't read the tokens in the rows, and doesn't
// look for tables with a column fence_token. If guards don't work on the server, it makes no further check.
func Connection(ctx context.Context, s *core.Settings, l core.ConnAdapter, rows bool) (found Survey, err error) {
	c := core.NewConn(s, l, new(core.Found))
	recognise := rows && len(s.Tables()) == 0
	if len(s.Tables()) > 0 || recognise {
		refused, err := c.CheckServer(ctx)
		switch {
		case err != nil:
			return found, err
		case refused != nil:
			return Survey{Findings: []Finding{wrongServer(refused)}, Version: refused.Version}, nil
		}
	}
	opts := Options{rows, recognise, s.Schema(), c.Capabilities()}
	looked, err := run(ctx, databases[s.Dialect()], querySurvey(l), toVerify(s), opts)
	if err != nil {
		return found, err
	}
	return looked.survey(), nil
}

func querySurvey(l core.ConnAdapter) Query {
	return func(ctx context.Context, query string) ([][]string, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return l.Query(ctx, query)
	}
}

func (l *look) survey() Survey {
	found := Survey{Findings: l.found, Version: l.version, Settings: make(map[string]string), Tables: []string{}}
	for name, value := range l.settings {
		if len(l.schemas) == 0 && !slices.Contains([]string{ownRole, "superuser", "replicas"}, name) {
			found.Settings[name] = value // SQLite's are its files
		}
	}
	if len(l.ledgers) > 0 {
		ledger := l.ledgers[0]
		found.Ledger = l.spell(ledger.schema, ledger.name)
		found.HidesTriggers = len(ledger.triggers) == 0 && ledger.hidesTriggers
	}
	for _, rel := range l.guarded() {
		found.Tables = append(found.Tables, l.name(rel))
	}
	slices.Sort(found.Tables)
	return found
}

// recognised is a pattern for the tables that may be recognised.
var recognised = Table{Registered: "*", Table: rewrite.Table{Pattern: true, Name: "*", FenceColumn: recognisedColumn}}

// recognise selects the tables with a fence column, and adds a note about facts that only registrations have.
func recognise(l *look) {
	if !l.opts.Recognise {
		return
	}
	version := l.rows("the version", l.db.known.Session.Version)
	l.version = strings.TrimSpace(strings.Join(slices.Concat(version...), " "))
	var tables []Table
	var rels []*relation
	var names, others []string
	for _, t := range l.targets {
		_, t.Sealed = l.sealOf(t)
		switch _, marked := t.rel.column(l.db, recognisedColumn); {
		case t.rel.partition:
		case marked:
			tables, rels, names = append(tables, *t.Table), append(rels, t.rel), append(names, l.name(t.rel))
		case t.Sealed:
			others = append(others, l.name(t.rel))
		}
	}
	l.tables, l.targets = tables, nil
	for i, rel := range rels {
		l.targets = append(l.targets, target{&l.tables[i], rel})
	}
	looked := "no table has a column " + recognisedColumn
	if len(names) > 0 {
		looked = "looked at by its column " + recognisedColumn + " was " + firstOf(names)
	}
	if len(others) > 0 {
		looked += "; not looked at was " + firstOf(others) + ", with a seal and another fence column"
	}
	l.add(nil, Finding{Code: "unseen",
		Problem: "No tables are registered here: " + looked + ". The rules and token names that programs register " +
			"aren't known, nor tables that have Ledger, Claim, Serial or EditLock alone.",
		Remedy: "Name the tables: --table or --tables of sqlfence verify; or call verify.Check in the program.",
	})
}
