package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sqlfence/sqlfence/tokens"
)

func (a *app) tokensRotate() *cobra.Command {
	var marks []string
	var dry, force bool
	cmd := &cobra.Command{
		Use:   "rotate NAME --reason TEXT [--mark TABLE=COLUMN]…",
		Short: "Retire a name for good, and reset stored tokens that are too high",
		Long: `Retire a name for good, with the names of its rows (NAME/KEY), and reset stored tokens above a tenth of
the highest token. Use the command if a name has run out of tokens, or if a token that was never issued is stored in a
fence column. The tokens of a new name begin above all other stored tokens.

First stop all processes that write to the tables. Afterwards start them with a new name (sqlfence.Resource), which
must not begin with the old name and a slash. Retiring can't be undone: --dry-run lists the names that would be
retired. Without --force the command refuses names of rows, and names with a live lease.`,
		Example: `  sqlfence tokens rotate books --mark books=fence_token --reason "wrong token"`,
		Args:    cobra.ExactArgs(1),

		ValidArgsFunction: first(a.completeNames),

		RunE: func(cmd *cobra.Command, args []string) error {
			var columns []tokens.RotateOption
			for _, m := range marks {
				parts := splitOutsideQuotes(m, '=')
				if len(parts) != 2 {
					return usage(fmt.Errorf("--mark %s: want TABLE=COLUMN", m))
				}
				columns = append(columns, tokens.Mark{Table: strings.TrimSpace(parts[0]),
					Column: strings.TrimSpace(parts[1])})
			}
			if len(columns) == 0 && !cmd.Flags().Changed("no-marks") {
				return usage(errors.New("no --mark: name the columns that store tokens of this name, as --mark " +
					"TABLE=COLUMN, or pass --no-marks"))
			}
			return a.withLedger(func(l *ledger) error {
				found, err := l.Retires(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				retired := []retiredLine{}
				for _, r := range found {
					retired = append(retired, retiredLine{r.Token.Name, r.Token.Value, r.Holder, r.Leased})
				}
				if dry {
					return a.write(struct {
						Retired []retiredLine `json:"retired"`
					}{retired}, func() { a.printRetired(retired, "would be retired") })
				}
				if force {
					columns = append(columns, tokens.RetireAll())
				}
				rows, err := l.Rotate(cmd.Context(), args[0], columns...)
				if err != nil {
					return err
				}
				return a.writeDone(struct {
					Name    string        `json:"name"`
					Rows    int64         `json:"rows"`
					Retired []retiredLine `json:"retired"`
					record
				}{args[0], rows, retired, a.record()}, "retired "+args[0], func() {
					named := func(l retiredLine) bool { return l.Name == args[0] }
					a.printRetired(slices.DeleteFunc(retired, named), "is retired")
					fmt.Fprintf(a.out, "%s is retired; %d marks are set back\n", visible(args[0]), rows)
				})
			})
		},
	}
	cmd.Flags().StringArrayVar(&marks, "mark", nil, "a table and its fence column; may be repeated")
	cmd.Flags().Bool("no-marks", false, "no table stores tokens of this name, because all have the ledger alone")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "list the names that would be retired, and change nothing")
	cmd.Flags().BoolVar(&force, "force", false, "also retire names of rows, and names with a live lease")
	cmd.MarkFlagsMutuallyExclusive("mark", "no-marks")
	cmd.MarkFlagsMutuallyExclusive("dry-run", "force")
	a.reasonFlag(cmd)
	return cmd
}

// A retiredLine is a name that is retired, or would be, with its last token.
type retiredLine struct {
	Name   string `json:"name"`
	Token  int64  `json:"token"`
	Holder string `json:"holder,omitempty"`
	Leased bool   `json:"leased"`
}

func (a *app) printRetired(retired []retiredLine, what string) {
	for _, r := range retired {
		lease := ""
		if r.Leased {
			lease = ", which has a live lease of " + visible(cmp.Or(r.Holder, "-"))
		}
		fmt.Fprintf(a.out, "%s %s, after token %d%s\n", visible(r.Name), what, r.Token, lease)
	}
}
