package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sqlfence/sqlfence/tokens"
)

func (a *app) tokensRotate() *cobra.Command {
	var reason string
	var marks []string
	cmd := &cobra.Command{
		Use:   "rotate NAME --reason TEXT [--mark TABLE=COLUMN]…",
		Short: "Retire a name for good, and set the marks of its rows back to 0",
		Long: `Retire a name, and the names of its rows, for good, and set the marks of all rows back to
0, so that the tokens of a new name can begin at 1 in these tables: for a name that has
run out of tokens, or after a token that was never issued has got into the marks.

First stop all processes that write to these tables. Then start them with a new name
(sqlfence.Resource). Retiring can't be undone.`,
		Example: `  sqlfence tokens rotate books --mark books=fence_token --reason "a token of another system got in"`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var columns []tokens.Mark
			for _, m := range marks {
				parts := splitOutsideQuotes(m, '=')
				if len(parts) != 2 {
					return usage(fmt.Errorf("--mark %s: want TABLE=COLUMN", m))
				}
				columns = append(columns, tokens.Mark{Table: strings.TrimSpace(parts[0]),
					Column: strings.TrimSpace(parts[1])})
			}
			if len(columns) == 0 && !cmd.Flags().Changed("no-marks") {
				return usage(errors.New("no --mark: which columns have the marks? --no-marks says that there are none"))
			}
			return a.withLedger(func(l *ledger) error {
				rows, err := l.Rotate(cmd.Context(), args[0], columns...)
				if err != nil {
					return err
				}
				r := newRecord(reason)
				return a.writeDone(struct {
					Name string `json:"name"`
					Rows int64  `json:"rows"`
					record
				}{args[0], rows, r}, "retired "+args[0], r, func() {
					fmt.Fprintf(a.out, "%s is retired; %d marks are set back\n", visible(args[0]), rows)
				})
			})
		},
	}
	cmd.Flags().StringArrayVar(&marks, "mark", nil, "a table and its fence column; may be repeated")
	cmd.Flags().Bool("no-marks", false, "no table has marks of this name, because all have the ledger alone")
	cmd.MarkFlagsMutuallyExclusive("mark", "no-marks")
	reasonFlag(cmd, &reason)
	return cmd
}
