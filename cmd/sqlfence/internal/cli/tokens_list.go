package cli

import (
	"strconv"

	"github.com/spf13/cobra"
)

func (a *app) tokensList() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the newest token of each name",
		Example: `  sqlfence tokens list --json | jq -r '.[] | select(.value > 1000) | .name'`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withLedger(func(l *ledger) error {
				found, err := l.list(cmd.Context())
				if err != nil {
					return err
				}
				return a.write(found, func() {
					var rows [][]string
					for _, t := range found {
						rows = append(rows, []string{t.Name, strconv.FormatInt(t.Value, 10), t.Fence})
					}
					a.table([]string{"NAME", "TOKEN", "FENCE"}, rows)
				})
			})
		},
	}
}
