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
	"github.com/sqlfence/sqlfence/internal/catalogue"
	"github.com/sqlfence/sqlfence/internal/fenced"
	"github.com/sqlfence/sqlfence/internal/sql/lang"
	"github.com/sqlfence/sqlfence/schema"
)

func (a *app) addFence() *cobra.Command {
	var apply bool
	var limit time.Duration
	var folder folder
	cmd := &cobra.Command{
		Use:   "add-fence [TABLE COLUMN]",
		Short: "Print the SQL that adds fence columns, or add them",
		Long: `Print the SQL that adds a fence column to a table in use, or the columns of row-fence to each table of
--table and --tables. With --dir write the SQL into a folder of migrations: for each table a file, and a file that
drops the column. With --apply add the columns. No row is written. While other sessions use a table, the command gives
up its lock after a moment and tries again. Existing columns stay as they are. For a pattern ("*", "shop.*") the
command asks the database for the tables.`,
		Example: `  sqlfence add-fence books fence_token --dialect postgres
  sqlfence add-fence shop.books fence_token --apply --timeout 5m
  sqlfence add-fence --tables shop.json --dir migrations --dialect postgres
  sqlfence add-fence --tables shop.json --apply`,
		Args: cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			fences, err := a.fences(cmd.Context(), args)
			if err != nil {
				return err
			}
			if apply {
				return a.withDatabase(false, func(_ database.Source, db *sql.DB) error {
					done, err := addFences(cmd.Context(), db, limit, fences)
					if err != nil {
						return err
					}
					return a.writeApplied(strings.Join(done, "\n"))
				})
			}
			source, err := a.text(false)
			if err != nil {
				return err
			}
			changes, err := fenceChanges(source, fences)
			if err != nil {
				return err
			}
			return a.writeMigrations(folder, changes)
		},
	}
	a.tableFlag(cmd)
	a.dialectFlag(cmd)
	applyFlags(cmd, &apply, &limit)
	folder.flags(cmd)
	return cmd
}

func (a *app) registers() bool { return len(a.tables)+len(a.tableFiles) > 0 }

// fences returns the columns of the arguments, or, without arguments, the columns of the registered tables.
func (a *app) fences(ctx context.Context, args []string) ([]catalogue.FenceColumn, error) {
	switch {
	case len(args) == 2 && !a.registers():
		return []catalogue.FenceColumn{{Table: args[0], Column: args[1]}}, nil
	case len(args) > 0 || !a.registers():
		return nil, usage(errors.New("give a table and a column, or --table, or --tables"))
	}
	fences, err := a.registeredFences(ctx, false)
	if err == nil && len(fences) == 0 {
		err = usage(errors.New("no --table has the rule row-fence, or no table is there that its pattern stands for"))
	}
	return fences, err
}

// registeredFences returns the columns of the registered tables; create is as in text.
func (a *app) registeredFences(ctx context.Context, create bool) (fences []catalogue.FenceColumn, err error) {
	err = a.withTables(create, nil, func(_ database.Source, db *sql.DB) error {
		settings, err := fenced.SettingsOf("add-fence", db)
		if err != nil {
			return err
		}
		if patterns := catalogue.PatternsOf(settings); len(patterns) > 0 && a.dialect != "" {
			return usage(fmt.Errorf("the database says which tables %s stands for: name it in %s in place of "+
				"--dialect", strings.Join(patterns, ", "), dsnVariable))
		}
		fences, err = catalogue.FenceColumns(ctx, "add-fence", db)
		return err
	})
	return fences, err
}

func addFences(
	ctx context.Context, db *sql.DB, limit time.Duration, fences []catalogue.FenceColumn,
) (done []string, err error) {
	err = within(ctx, limit, func(ctx context.Context) error {
		for _, f := range fences {
			if err := schema.AddFence(ctx, db, f.Table, f.Column); err != nil {
				return err
			}
			done = append(done, fmt.Sprintf("table %s has the column %s", visible(f.Table), visible(f.Column)))
		}
		return nil
	})
	return done, err
}

// fenceChanges returns the SQL that adds the fence columns, and the SQL that drops them.
func fenceChanges(source database.Source, fences []catalogue.FenceColumn) (changes []change, err error) {
	for _, f := range fences {
		statements, err := schema.AddFenceSQL(source.Dialect, f.Table, f.Column)
		if err != nil {
			return nil, err
		}
		drop, err := dropFence(source, f)
		if err != nil {
			return nil, err
		}
		c := scriptOf(source, "the fence column of "+f.Table, statements)
		c.Down, c.title = drop, titleOf(f.Table)+"-"+titleOf(f.Column)
		changes = append(changes, c)
	}
	return changes, nil
}

// dropFence returns the statement that takes a column away. Its names were read before.
func dropFence(source database.Source, f catalogue.FenceColumn) (string, error) {
	in, table, err := lang.SpellName(source.Dialect, f.Table)
	if err != nil {
		return "", err
	}
	_, column, err := lang.SpellName(source.Dialect, f.Column)
	table = source.Text.Quote(table)
	if in != "" {
		table = source.Text.Quote(in) + "." + table
	}
	return "ALTER TABLE " + table + " DROP COLUMN " + source.Text.Quote(column), err
}

// applyFlags adds --apply and --timeout, for commands that wait for a table's other sessions.
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
	return change{Name: name, SQL: source.Script(statements), Statements: statements}
}
