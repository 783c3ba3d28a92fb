package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/nfc"
)

func (a *app) tokensDelete() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete NAME… --reason TEXT",
		Short: "Delete names without a holder, such as the names of done jobs",
		Long: `Delete names without a holder from the ledger, such as the names of done jobs. Their tokens are never
used again: the first token of every new name is above them. The command keeps a name that an open transaction uses, a
retired name, and a name that has used up a tenth of its tokens; then the status is 3. Names that the ledger doesn't
have are reported.`,
		Example: `  sqlfence tokens delete jobs/41 jobs/42 --reason "done long ago"`,
		Args:    cobra.MinimumNArgs(1),

		ValidArgsFunction: a.completeNames,

		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withLedger(func(l *ledger) error {
				missing := l.missing(cmd.Context(), args)
				left, err := l.Delete(cmd.Context(), args...)
				if err != nil {
					return err
				}
				deleted := slices.DeleteFunc(slices.Clone(args), func(name string) bool {
					return slices.Contains(left, nfc.String(name)) || slices.Contains(missing, name)
				})
				did := "deleted nothing"
				if len(deleted) > 0 {
					did = "deleted " + strings.Join(deleted, " ")
				}
				err = a.writeDone(struct {
					Left    []string `json:"left"`
					Missing []string `json:"missing,omitempty"`
					record
				}{append([]string{}, left...), missing, a.record()}, did, func() {
					for _, name := range missing {
						fmt.Fprintf(a.out, "the ledger has no name %s\n", visible(name))
					}
					for _, name := range left {
						fmt.Fprintf(a.out, "%s is left\n", visible(name))
					}
				})
				if len(left) > 0 {
					return no(err)
				}
				return err
			})
		},
	}
	a.reasonFlag(cmd)
	return cmd
}

// missing returns the names that the ledger doesn't have.
func (l *ledger) missing(ctx context.Context, names []string) (missing []string) {
	for _, name := range names {
		if _, err := l.Current(ctx, name); errors.Is(err, sqlfence.ErrUnknownName) {
			missing = append(missing, name)
		}
	}
	return missing
}
