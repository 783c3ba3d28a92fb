package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sqlfence/sqlfence/internal/nfc"
)

func (a *app) tokensDelete() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete NAME… --reason TEXT",
		Short: "Delete names that have served, such as those of jobs that are done",
		Long: `Delete names that have served from the ledger, such as those of jobs that are done. None of
their tokens is used again: the first token of a new name is above them, also where a name
comes back. A name that an open transaction uses is left, and so is one that is retired or
has used up a tenth of its tokens; the status is 3 then. One that isn't there is left out.`,
		Example: `  sqlfence tokens delete jobs/41 jobs/42 --reason "done long ago"`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withLedger(func(l *ledger) error {
				left, err := l.Delete(cmd.Context(), args...)
				if err != nil {
					return err
				}
				deleted := slices.DeleteFunc(slices.Clone(args), func(name string) bool {
					return slices.Contains(left, nfc.String(name))
				})
				did := "deleted nothing"
				if len(deleted) > 0 {
					did = "deleted " + strings.Join(deleted, " ")
				}
				err = a.writeDone(struct {
					Left []string `json:"left"`
					record
				}{append([]string{}, left...), a.record()}, did, func() {
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
