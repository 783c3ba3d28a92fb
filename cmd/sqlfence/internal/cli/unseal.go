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
		Short: "Print the SQL that takes seals away, or take them away",
		Long: `Print the SQL that takes away the seals of the tables that are registered as sealed; or with
--apply take them away. Programs go on while it runs. Without --dialect
it looks at what the SQL depends on, and changes nothing.`,
		Example: `  sqlfence unseal --table books=row-fence:fence_token,sealed --apply`,
	}
	a.sealing(cmd, s)
	return cmd
}
