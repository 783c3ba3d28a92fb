package cli

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/sqlfence/sqlfence/cmd/sqlfence/internal/database"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/rowlock"
	"github.com/sqlfence/sqlfence/schema"
	"github.com/sqlfence/sqlfence/tokens"
)

func (a *app) init() *cobra.Command {
	var apply, issuers bool
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Print the SQL of sqlfence's own tables, or create them",
		Long: `Print the SQL that creates sqlfence's own tables (fencing_tokens, fencing_leases, rowlocks)
and, on PostgreSQL, the ledger's function; or with --apply create them. What is there is left
as it is, so it can be run again. Nothing is sent to the database without --apply.

With --issuers the database also records who has raised each token last, and when, for tokens list.`,
		Example: `  sqlfence init --dialect postgres > 0001_sqlfence.sql
  SQLFENCE_DSN=sqlite:books.db sqlfence init --apply
  sqlfence init --issuers --apply`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if apply {
				return a.createOwn(cmd.Context(), issuers)
			}
			source, err := a.text(true)
			if err != nil {
				return err
			}
			files, err := ownFiles(source, "")
			if err == nil && issuers {
				var more []change
				more, err = ownFiles(source, "issuers/")
				files = append(files, more...)
			}
			if err != nil {
				return err
			}
			return a.writeSQL(files)
		},
	}
	cmd.Flags().BoolVar(&apply, "apply", false, "create them instead of printing the SQL")
	cmd.Flags().BoolVar(&issuers, "issuers", false, "record who raises tokens, and when")
	a.dialectFlag(cmd)
	cmd.MarkFlagsMutuallyExclusive("apply", "dialect")
	return cmd
}

// A change is SQL that is to be run.
type change struct {
	Name string `json:"name"` // the file of package schema, or what the SQL is for
	SQL  string `json:"sql"`

	// Statements are those of SQL, one by one; of a file there are none.
	Statements []string `json:"statements,omitempty"`
}

// ownFiles returns the files of package schema for a database, of a part that is empty or has a slash behind it.
func ownFiles(source database.Source, part string) (changes []change, err error) {
	folder := part + source.Name
	entries, err := fs.Glob(schema.Files, folder+"/*.sql")
	if err != nil {
		return nil, err
	}
	for _, name := range entries {
		text, err := fs.ReadFile(schema.Files, name)
		if err != nil {
			return nil, err
		}
		written := source.File(source.Place(string(text)))
		changes = append(changes, change{Name: part + name[len(folder)+1:], SQL: written})
	}
	return changes, nil
}

func (a *app) writeSQL(changes []change) error {
	return a.write(struct {
		Applied bool     `json:"applied"`
		Changes []change `json:"changes"`
	}{false, append([]change{}, changes...)}, func() {
		for _, c := range changes {
			fmt.Fprintf(a.out, "-- %s\n%s\n", visible(c.Name), c.SQL)
		}
	})
}

// createOwn creates sqlfence's own tables, and what records who takes tokens if that is wanted.
func (a *app) createOwn(ctx context.Context, issuers bool) error {
	return a.withDatabase(true, func(source database.Source, db *sql.DB) error {
		store, err := a.setup(ctx, source, db)
		if err == nil && issuers {
			err = store.RecordIssuers(ctx)
		}
		if err != nil {
			return err
		}
		return a.writeApplied("sqlfence's tables are there")
	})
}

func (a *app) writeApplied(what string) error {
	return a.write(struct {
		Applied bool `json:"applied"`
	}{true}, func() { fmt.Fprintln(a.out, what) })
}

// setup brings sqlfence's own tables up to date.
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
