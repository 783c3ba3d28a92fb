package cli

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sqlfence/sqlfence/cmd/sqlfence/internal/database"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
	"github.com/sqlfence/sqlfence/internal/setuperr"
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

// isDone reports whether the database has what a file of package schema creates, by the file or by a Setup method. It
// runs the file's query in LaterFiles, or, if there is none, looks for the table in the file's name.
func isDone(ctx context.Context, source database.Source, db *sql.DB, file string) (bool, error) {
	if question, ok := source.LaterFiles[file]; ok {
		found, err := dialectopt.Texts(ctx, db, question)
		return len(found) > 0, err
	}
	_, table, _ := strings.Cut(strings.TrimSuffix(file, ".up.sql"), "_")
	t := setuperr.Table{Name: table, SQL: source.Place(table), Privileges: "SELECT"}
	switch err := dialectopt.EachRow(ctx, db, nil, "SELECT 1 FROM "+table+" WHERE 1 = 0"); {
	case setuperr.Lacks(err, t):
		return false, nil
	case err != nil:
		return false, dialectopt.Explain(ctx, db, err, t)
	}
	return true, nil
}
