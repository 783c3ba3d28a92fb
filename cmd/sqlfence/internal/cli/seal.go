package cli

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/schema"
)

func (a *app) seal() *cobra.Command {
	s := sealing{
		sql:   func(d sqlfence.Dialect, t sqlfence.Table) ([]string, error) { return schema.SealSQL(d, t) },
		apply: schema.Seal,
		done:  "sealed",
	}
	cmd := &cobra.Command{
		Use:   "seal --table NAME=row-fence:COLUMN,sealed…",
		Short: "Print the SQL that seals tables, or seal them",
		Long: `Print the SQL that seals the tables that are registered as sealed; or with --apply seal them:
from then on the database refuses every write without a token, whoever sends it. First
deploy the programs that write to them with sqlfence.Sealed; they go on while it runs.
It may be run again. On SQLite the SQL depends on the table, and isn't printed.`,
		Example: `  sqlfence seal --table books=row-fence:fence_token,sealed --dialect postgres
  sqlfence seal --table books=row-fence:fence_token,sealed --apply`,
	}
	a.sealing(cmd, s)
	return cmd
}

// A sealing is seal or unseal.
type sealing struct {
	sql   func(sqlfence.Dialect, sqlfence.Table) ([]string, error)
	apply func(context.Context, *sql.DB) error
	done  string
}

// sealing makes a command of it.
func (a *app) sealing(cmd *cobra.Command, s sealing) {
	var apply bool
	var limit time.Duration
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		options, err := a.registered()
		if err != nil {
			return err
		}
		if !apply {
			return a.writeSealing(s, options)
		}
		db, err := a.open(options...)
		if err != nil {
			return err
		}
		defer db.Close()
		tables, err := sealedTables(db)
		if err != nil {
			return err
		}
		if err := within(cmd.Context(), limit, func(ctx context.Context) error { return s.apply(ctx, db) }); err != nil {
			return err
		}
		return a.writeApplied(fmt.Sprintf("%s: %s", s.done, names(tables)))
	}
	a.tableFlag(cmd)
	a.dialectFlag(cmd)
	applyFlags(cmd, &apply, &limit)
}

// writeSealing prints the SQL.
func (a *app) writeSealing(s sealing, options []sqlfence.Option) error {
	source, err := a.text()
	if err != nil {
		return err
	}
	if source.SealLooks {
		return usage(fmt.Errorf("on %s the SQL of a seal depends on the table: use --apply", source.Name))
	}
	db, err := source.Open(options...)
	if err != nil {
		return err
	}
	defer db.Close()
	tables, err := sealedTables(db)
	if err != nil {
		return err
	}
	var changes []change
	for _, t := range tables {
		statements, err := s.sql(source.Dialect, t)
		if err != nil {
			return err
		}
		changes = append(changes, change{s.done + ": " + t.Name, script(statements)})
	}
	return a.writeSQL(changes)
}

// sealedTables returns the tables that are registered as sealed.
func sealedTables(db *sql.DB) (found []sqlfence.Table, err error) {
	tables, err := sqlfence.Tables(db)
	for _, t := range tables {
		if t.Sealed {
			found = append(found, t)
		}
	}
	if err == nil && len(found) == 0 {
		err = usage(errors.New("no --table has the rule sealed"))
	}
	return found, err
}

func names(tables []sqlfence.Table) string {
	var all []string
	for _, t := range tables {
		all = append(all, visible(t.Name))
	}
	return strings.Join(all, ", ")
}
