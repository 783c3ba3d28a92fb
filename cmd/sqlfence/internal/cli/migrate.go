package cli

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sqlfence/sqlfence/cmd/sqlfence/internal/database"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
	"github.com/sqlfence/sqlfence/internal/setuperr"
	"github.com/sqlfence/sqlfence/internal/trusted"
)

func (a *app) migrate() *cobra.Command {
	var apply bool
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Print the SQL of sqlfence's missing tables, or create them",
		Long: `Print the SQL of sqlfence's own tables, triggers and functions that are missing in the database. With
--apply create them, and update the tables of an older version.`,
		Example: `  sqlfence migrate
  sqlfence migrate --apply`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if apply {
				return a.createAll(cmd.Context(), 0, nil, false)
			}
			return a.withDatabase(false, func(source database.Source, db *sql.DB) error {
				lacking, err := lacks(cmd.Context(), source, db)
				if err != nil {
					return err
				}
				if len(lacking) == 0 && !a.json {
					fmt.Fprintln(a.out, "-- nothing is missing")
					return nil
				}
				return a.writeSQL(lacking)
			})
		},
	}
	cmd.Flags().BoolVar(&apply, "apply", false, "create them instead of printing the SQL")
	return cmd
}

// lacks returns the files of package schema that weren't applied.
func lacks(ctx context.Context, source database.Source, db *sql.DB) (lacking []change, err error) {
	files, err := ownFiles(source, false, "")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		done, err := isDone(ctx, source, db, file.Name)
		if err != nil {
			return nil, err
		}
		if !done {
			lacking = append(lacking, file)
		}
	}
	return lacking, nil
}

// isDone reports whether a file or Setup has run. isDone checks for the table in the file's name, unless LaterFiles has
// a query for the file.
func isDone(ctx context.Context, source database.Source, db *sql.DB, file string) (bool, error) {
	if question, ok := source.LaterFiles[file]; ok {
		var found int
		err := db.QueryRowContext(trusted.Context(ctx, question), question).Scan(&found)
		if errors.Is(err, sql.ErrNoRows) {
			return false, nil
		}
		return err == nil, err
	}
	_, table, _ := strings.Cut(strings.TrimSuffix(file, ".up.sql"), "_")
	look := "SELECT 1 FROM " + table + " WHERE 1 = 0"
	rows, err := db.QueryContext(trusted.Context(ctx, look), look)
	if err == nil {
		err = errors.Join(rows.Err(), rows.Close())
	}
	if err != nil && source.IsMissing(err) {
		return false, nil
	}
	if err != nil {
		err = dialectopt.Explain(ctx, db, err, setuperr.Table{Name: table, SQL: source.Place(table),
			Privileges: "SELECT"})
	}
	return err == nil, err
}
