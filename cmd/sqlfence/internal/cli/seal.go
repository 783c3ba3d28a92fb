package cli

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqlfence/sqlfence/cmd/sqlfence/internal/database"
	"github.com/sqlfence/sqlfence/internal/fenced"
	"github.com/sqlfence/sqlfence/schema"
)

func (a *app) seal() *cobra.Command {
	s := sealing{
		sql:   schema.SealSQL,
		plan:  schema.SealPlan,
		apply: schema.Seal,
		done:  "sealed",
	}
	cmd := &cobra.Command{
		Use:   "seal --table NAME=row-fence:COLUMN,sealed…",
		Short: "Print the SQL that seals tables, or seal them",
		Long: `Print the SQL that seals the tables with the rule sealed, for psql or mariadb. With --apply seal them:
from then on the database refuses every write without a token from any client. First deploy the programs that write to
the tables, with sqlfence.Sealed. They can continue to write meanwhile. The command can be repeated. Without --dialect
the command reads the tables before it prints the SQL. A table of SQLite can't be sealed.`,
		Example: `  sqlfence seal --table books=row-fence:fence_token,sealed --dialect postgres
  sqlfence seal --table books=row-fence:fence_token,sealed --apply`,
	}
	a.sealing(cmd, s)
	return cmd
}

// A sealing is seal or unseal.
type sealing struct {
	sql   func(*sql.DB, ...string) ([]schema.TablePlan, error) // without asking the database
	plan  func(context.Context, *sql.DB) ([]schema.TablePlan, error)
	apply func(context.Context, *sql.DB) error
	done  string
}

func (a *app) sealing(cmd *cobra.Command, s sealing) {
	var apply bool
	var limit time.Duration
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return a.withTables(false, nil, func(source database.Source, db *sql.DB) error {
			tables, err := sealedTables(db)
			switch {
			case err != nil:
				return err
			case !apply:
				return a.writeSealing(cmd.Context(), s, source, db)
			}
			apply := func(ctx context.Context) error { return s.apply(ctx, db) }
			if err := within(cmd.Context(), limit, apply); err != nil {
				return err
			}
			return a.writeApplied(fmt.Sprintf("%s: %s", s.done, strings.Join(tables, ", ")))
		})
	}
	a.tableFlag(cmd)
	a.dialectFlag(cmd)
	applyFlags(cmd, &apply, &limit)
}

// writeSealing prints the SQL; with --dialect there is no database to look at.
func (a *app) writeSealing(ctx context.Context, s sealing, source database.Source, db *sql.DB) error {
	plan := s.plan
	if a.dialect != "" {
		plan = func(_ context.Context, db *sql.DB) ([]schema.TablePlan, error) { return s.sql(db) }
	}
	plans, err := plan(ctx, db)
	if err != nil {
		return err
	}
	var changes []change
	for _, p := range plans {
		changes = append(changes, scriptOf(source, s.done+": "+p.Table, p.Statements))
	}
	return a.writeSQL(changes)
}

// sealedTables returns the names of the tables that are registered as sealed.
func sealedTables(db *sql.DB) (found []string, err error) {
	settings, err := fenced.SettingsOf("seal", db)
	if err != nil {
		return nil, err
	}
	for _, t := range settings.Tables() {
		if t.Rules.Sealed {
			found = append(found, visible(t.Name))
		}
	}
	if len(found) == 0 {
		err = usage(errors.New("no --table has the rule sealed"))
	}
	return found, err
}
