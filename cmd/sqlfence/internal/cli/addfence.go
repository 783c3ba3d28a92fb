package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqlfence/sqlfence/cmd/sqlfence/internal/database"
	"github.com/sqlfence/sqlfence/internal/fenced"
	"github.com/sqlfence/sqlfence/schema"
)

func (a *app) addFence() *cobra.Command {
	var apply bool
	var limit time.Duration
	cmd := &cobra.Command{
		Use:   "add-fence [TABLE COLUMN]",
		Short: "Print the SQL that adds a fence column to a table, or to all registered ones, or add it",
		Long: `Print the SQL that adds the column of row-fence to a table that programs are writing to, or to
each table of --table and --tables; or with --apply add it. No row is written. Where a table is
in use it gives up soon, lets the others pass, and tries again. A column that is there is left as
it is.`,
		Example: `  sqlfence add-fence books fence_token --dialect postgres
  sqlfence add-fence shop.books fence_token --apply --timeout 5m
  sqlfence add-fence --tables shop.json --apply`,
		Args: cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			fences, err := a.fences(args)
			if err != nil {
				return err
			}
			if !apply {
				return a.writeFences(fences)
			}
			db, err := a.open()
			if err != nil {
				return err
			}
			defer db.Close()
			err = within(cmd.Context(), limit, func(ctx context.Context) error {
				for _, f := range fences {
					if err := schema.AddFence(ctx, db, f.table, f.column); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
			var done []string
			for _, f := range fences {
				done = append(done, fmt.Sprintf("table %s has the column %s", visible(f.table), visible(f.column)))
			}
			return a.writeApplied(strings.Join(done, "\n"))
		},
	}
	a.tableFlag(cmd)
	a.dialectFlag(cmd)
	applyFlags(cmd, &apply, &limit)
	return cmd
}

// A fence is a column to add, by its names as WithTable and RowFence read them.
type fence struct{ table, column string }

// fences returns the columns of the arguments, or those of the registered tables.
func (a *app) fences(args []string) (fences []fence, err error) {
	registers := len(a.tables)+len(a.tableFiles) > 0
	switch {
	case len(args) == 2 && !registers:
		return []fence{{args[0], args[1]}}, nil
	case len(args) > 0 || !registers:
		return nil, usage(errors.New("want a table and a column, or --table or --tables"))
	}
	source := func() (database.Source, error) { return a.text(false) }
	options, err := a.registered(source, nil)
	if err != nil {
		return nil, err
	}
	of, err := source()
	if err != nil {
		return nil, err
	}
	db, err := of.Open(options...)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	settings, err := fenced.SettingsOf("add-fence", db)
	if err != nil {
		return nil, err
	}
	for _, t := range settings.Tables() {
		if table, column, ok := t.FenceNames(); ok {
			fences = append(fences, fence{table, column})
		}
	}
	if len(fences) == 0 {
		err = usage(errors.New("no --table has the rule row-fence"))
	}
	return fences, err
}

// writeFences prints the SQL.
func (a *app) writeFences(fences []fence) error {
	source, err := a.text(true)
	if err != nil {
		return err
	}
	var changes []change
	for _, f := range fences {
		statements, err := schema.AddFenceSQL(source.Dialect, f.table, f.column)
		if err != nil {
			return err
		}
		changes = append(changes, scriptOf(source, "the fence column of "+f.table, statements))
	}
	return a.writeSQL(changes)
}

// applyFlags adds --apply and --timeout, for what waits for others who use a table.
func applyFlags(cmd *cobra.Command, apply *bool, limit *time.Duration) {
	cmd.Flags().BoolVar(apply, "apply", false, "do it instead of printing the SQL")
	cmd.Flags().DurationVar(limit, "timeout", time.Minute, "with --apply, how long to wait for "+
		"others who use the table")
	cmd.MarkFlagsMutuallyExclusive("apply", "dialect")
}

// within calls f with a context that ends after the limit.
func within(ctx context.Context, limit time.Duration, f func(context.Context) error) error {
	if limit <= 0 {
		return usage(errors.New("--timeout has to be over 0"))
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := f(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("others have used the table for all of --timeout, which is %v; try again, or "+
			"for longer: %w", limit,
			err)
	}
	return err
}

// scriptOf returns statements as a change, with a text for the database's own client.
func scriptOf(source database.Source, name string, statements []string) change {
	return change{name, source.Script(statements), statements}
}
