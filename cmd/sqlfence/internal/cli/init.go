package cli

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqlfence/sqlfence/cmd/sqlfence/internal/database"
	"github.com/sqlfence/sqlfence/internal/catalogue"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/rowlock"
	"github.com/sqlfence/sqlfence/schema"
	"github.com/sqlfence/sqlfence/tokens"
)

func (a *app) init() *cobra.Command {
	var apply, issuers bool
	var limit time.Duration
	var folder folder
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Print the SQL that a program needs, or write or run it",
		Long: `Print the SQL that creates sqlfence's own tables (fencing_tokens, fencing_leases, rowlocks) and, on
PostgreSQL, the ledger's function and the procedures for programs in other languages, and that adds the fence column
to each table of --table and --tables with row-fence. With --dir write the SQL into a folder of migrations. With
--apply run it. Existing tables and columns stay as they are, so the command can be repeated. Without --apply the
database isn't changed.

With --issuers the database records who raised each token last, and when, for tokens list.`,
		Example: `  sqlfence init --dialect postgres > 0001_sqlfence.sql
  sqlfence init --dialect postgres --table books=row-fence:fence_token \
    --dir migrations
  SQLFENCE_DSN=sqlite:books.db sqlfence init --apply
  sqlfence init --issuers --apply`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var fences []catalogue.FenceColumn
			var err error
			if a.registers() {
				fences, err = a.registeredFences(cmd.Context(), true)
			}
			if err != nil {
				return err
			}
			if apply {
				return a.createAll(cmd.Context(), limit, fences, issuers)
			}
			source, err := a.text(true)
			if err != nil {
				return err
			}
			parts := []string{""}
			if issuers {
				parts = append(parts, "issuers/")
			}
			own, err := ownFiles(source, folder.dir != "", parts...)
			if err != nil {
				return err
			}
			columns, err := fenceChanges(source, fences)
			if err != nil {
				return err
			}
			return a.writeMigrations(folder, append(own, columns...))
		},
	}
	cmd.Flags().BoolVar(&issuers, "issuers", false, "record who raises tokens, and when")
	a.tableFlag(cmd)
	a.dialectFlag(cmd)
	applyFlags(cmd, &apply, &limit)
	folder.flags(cmd)
	return cmd
}

// A change is SQL that is to be run.
type change struct {
	Name string `json:"name"` // the file of package schema, or what the SQL is for
	SQL  string `json:"sql"`

	// Statements are the statements of SQL in order; empty for a file.
	Statements []string `json:"statements,omitempty"`

	Down  string   `json:"down,omitempty"`  // takes it back; empty if nothing should
	Files []string `json:"files,omitempty"` // the files that were written

	title string // title of a file
}

// ownFiles returns the files of package schema for a database. If migrations is set, the files are for a migration
// tool, otherwise for the database's own client. The parts are folders of the package: "" or "issuers/".
func ownFiles(source database.Source, migrations bool, parts ...string) (changes []change, err error) {
	for _, part := range parts {
		folder := part + source.Name
		entries, _ := fs.Glob(schema.Files, folder+"/*.sql") // the pattern is right
		for _, name := range entries {
			text, err := fs.ReadFile(schema.Files, name)
			if err != nil {
				return nil, err
			}
			c := change{Name: part + name[len(folder)+1:], SQL: source.Place(string(text))}
			if !migrations {
				c.SQL = source.File(c.SQL)
			}
			_, title, _ := strings.Cut(c.Name, "_")
			c.title = strings.TrimSuffix(title, ".up.sql")
			changes = append(changes, c)
		}
	}
	return changes, nil
}

func (a *app) writeSQL(changes []change) error {
	return a.writeChanges(changes, func() {
		for _, c := range changes {
			fmt.Fprintf(a.out, "-- %s\n%s\n", visible(c.Name), c.SQL)
		}
	})
}

func (a *app) writeChanges(changes []change, text func()) error {
	return a.write(struct {
		Applied bool     `json:"applied"`
		Changes []change `json:"changes"`
	}{false, append([]change{}, changes...)}, text)
}

// createAll creates sqlfence's tables and adds the fence columns. If issuers is set, createAll adds the columns and
// triggers that record who changes each token.
func (a *app) createAll(ctx context.Context, limit time.Duration, fences []catalogue.FenceColumn, issuers bool) error {
	return a.withDatabase(true, func(source database.Source, db *sql.DB) error {
		lacking, unknown := lacks(ctx, source, db)
		store, err := a.setup(ctx, source, db)
		if err == nil && issuers {
			err = store.RecordIssuers(ctx)
		}
		if err != nil {
			return err
		}
		done := []string{"sqlfence's tables are there"}
		var created []string
		if unknown == nil {
			for _, c := range lacking {
				created = append(created, c.title)
			}
			done[0] += "; created: " + cmp.Or(strings.Join(created, ", "), "nothing")
		}
		if len(fences) > 0 {
			columns, err := addFences(ctx, db, limit, fences)
			if err != nil {
				return err
			}
			done = append(done, columns...)
		}
		return a.writeApplied(strings.Join(done, "\n"), created...)
	})
}

// writeApplied writes the result of a command that has changed the database: for people the text what, as JSON the
// list created, which names sqlfence's tables, triggers and functions that were missing before.
func (a *app) writeApplied(what string, created ...string) error {
	return a.write(struct {
		Applied bool     `json:"applied"`
		Created []string `json:"created,omitempty"`
	}{true, created}, func() { fmt.Fprintln(a.out, what) })
}

func (a *app) setup(ctx context.Context, source database.Source, db *sql.DB) (*tokens.Store, error) {
	store, err := tokens.New(db, tokens.WithLogger(a.log))
	if err != nil {
		return nil, err
	}
	leases, err := source.Leases(db, lease.WithLogger(a.log))
	if err != nil {
		return nil, err
	}
	locks, err := rowlock.NewManager(db)
	if err != nil {
		return nil, err
	}
	for _, setup := range []func(context.Context) error{store.Setup, leases.Setup, locks.Setup} {
		if err := setup(ctx); err != nil {
			return nil, err
		}
	}
	return store, nil
}
