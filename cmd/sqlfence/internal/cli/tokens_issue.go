package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

func (a *app) tokensIssue() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "issue NAME --reason TEXT",
		Short: "Issue the next token of a name, which makes all before it stale",
		Long: `Issue the next token of a name. Writes with an older one are refused from then on: at
once on tables with the ledger; on tables with row-fence alone, in the rows that the new token
has written. A program that holds a lease of this name loses its writes, and isn't told.`,
		Example: `  sqlfence tokens issue books --reason "worker-3 hangs in the middle of a write"`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withLedger(func(l *ledger) error {
				token, err := l.Issue(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return a.writeDone(struct {
					tokenRow
					record
				}{newTokenRow(token), a.record()}, "issued "+token.String(), func() {
					fmt.Fprintf(a.out, "%s\n", quoted(token.String()))
				})
			})
		},
	}
	a.reasonFlag(cmd)
	return cmd
}
