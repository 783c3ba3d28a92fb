package cli

import (
	"context"
	"database/sql"

	"github.com/spf13/cobra"

	"github.com/sqlfence/sqlfence/schema"
)

func (a *app) unseal() *cobra.Command {
	s := sealing{
		sql:   schema.UnsealSQL,
		plan:  func(ctx context.Context, db *sql.DB) ([]schema.TablePlan, error) { return schema.UnsealPlan(ctx, db) },
		apply: func(ctx context.Context, db *sql.DB) error { return schema.Unseal(ctx, db) },
		done:  "unsealed",
	}
	cmd := &cobra.Command{
		Use:   "unseal --table NAME=row-fence:COLUMN,sealed…",
		Short: "Print the SQL that removes seals, or remove them",
		Long: `Print the SQL that removes the seals of the tables with the rule sealed, or with --apply remove them.
Programs can continue to write meanwhile. Without --dialect the command reads the tables before it prints the SQL.`,
		Example: `  sqlfence unseal --table books=row-fence:fence_token,sealed --apply`,
	}
	a.sealing(cmd, s)
	return cmd
}
