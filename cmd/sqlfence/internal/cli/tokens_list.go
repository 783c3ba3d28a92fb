package cli

import (
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/sqlfence/sqlfence"
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
						rows = append(rows, []string{t.Name, strconv.FormatInt(t.Value, 10), t.Fence, worn(t.Value)})
					}
					header := []string{"NAME", "TOKEN", "FENCE", "RANGE"}
					if !slices.ContainsFunc(rows, func(row []string) bool { return row[3] != "" }) {
						header = header[:3]
						for i := range rows {
							rows[i] = rows[i][:3]
						}
					}
					a.table(header, rows)
				})
			})
		},
	}
}

// worn says of a token near the end of its range how much of that is used up; empty for another.
func worn(token int64) string {
	switch {
	case token > sqlfence.MaxToken:
		return "retired"
	case token >= sqlfence.WarnToken:
		return percent(token) + " used up"
	}
	return ""
}
