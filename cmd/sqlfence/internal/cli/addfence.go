package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqlfence/sqlfence/cmd/sqlfence/internal/database"
	"github.com/sqlfence/sqlfence/schema"
)

func (a *app) addFence() *cobra.Command {
	var apply bool
	var limit time.Duration
	cmd := &cobra.Command{
		Use:   "add-fence TABLE COLUMN",
		Short: "Print the SQL that adds a fence column to a table, or add it",
		Long: `Print the SQL that adds the column of row-fence to a table that programs are writing to; or
with --apply add it. No row is written. Where the table is in use it gives up soon, lets the
others pass, and tries again. A column that is there is left as it is.`,
		Example: `  sqlfence add-fence books fence_token --dialect postgres
  sqlfence add-fence shop.books fence_token --apply --timeout 5m`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !apply {
				source, err := a.text(true)
				if err != nil {
					return err
				}
				statements, err := schema.AddFenceSQL(source.Dialect, args[0], args[1])
				if err != nil {
					return err
				}
				return a.writeSQL([]change{scriptOf(source, "the fence column of "+args[0], statements)})
			}
			db, err := a.open()
			if err != nil {
				return err
			}
			defer db.Close()
			err = within(cmd.Context(), limit, func(ctx context.Context) error {
				return schema.AddFence(ctx, db, args[0], args[1])
			})
			if err != nil {
				return err
			}
			return a.writeApplied(fmt.Sprintf("table %s has the column %s", visible(args[0]), visible(args[1])))
		},
	}
	a.dialectFlag(cmd)
	applyFlags(cmd, &apply, &limit)
	return cmd
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
