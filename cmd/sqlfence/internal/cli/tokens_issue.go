package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

func (a *app) tokensIssue() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "issue NAME --reason TEXT",
		Short: "Issue the next token of a name, so that earlier ones are stale",
		Long: `Issue the next token of a name. From then on, tables with the rule ledger refuse writes with an older
token; tables with row-fence alone refuse them in the rows that the new token has written. A program that holds a
lease of this name isn't notified: its next write is refused.`,
		Example: `  sqlfence tokens issue books --reason "worker-3 hangs in the middle of a write"`,
		Args:    cobra.ExactArgs(1),

		ValidArgsFunction: first(a.completeNames),

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
