package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/tokens"
)

func (a *app) tokensRepair() *cobra.Command {
	var floor int64
	var dry, force bool
	cmd := &cobra.Command{
		Use:   "repair --floor N --reason TEXT",
		Short: "Raise all tokens to a floor, after a restore that lost tokens",
		Long: `Raise every token below the floor to the floor, and let new names begin above the floor. Use the
command after a restore from a dump or a copied file, and after a failover that may have lost tokens. The floor must
be at least the highest token that may have been issued. No command lowers the tokens again: --dry-run lists the
tokens that would be raised. Without --force the command refuses a floor above 90000000000000, a tenth of the highest
token.`,
		Example: `  sqlfence tokens repair --floor 5000 --reason "a dump was restored" --dry-run
  sqlfence tokens repair --floor 5000 --reason "restored last night's dump"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withLedger(func(l *ledger) error {
				meant := force || floor <= sqlfence.WarnToken || floor > sqlfence.MaxToken
				if dry || !meant {
					if err := a.planRepair(cmd.Context(), l, floor); err != nil || dry {
						return err
					}
					return usage(fmt.Errorf("nothing was raised: a floor of %d uses up %s of the tokens of every name "+
						"above, and of every new one, for ever. If only one name has stored tokens that high, replace that "+
						"name: sqlfence tokens rotate. If the floor is meant, add --force", floor, percent(floor)))
				}
				done, err := l.Repair(cmd.Context(), floor, tokens.AboveWarnToken())
				if err != nil {
					return tooHigh(err)
				}
				answer, r := newRepaired(floor, done), a.record()
				answer.record = &r
				return a.writeDone(answer, fmt.Sprintf("raised %d names to %d", len(answer.Raised), floor),
					func() { a.printRepaired(answer, "have risen", "has risen") })
			})
		},
	}
	cmd.Flags().Int64Var(&floor, "floor", 0, "the floor, from 1 on")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "list the tokens that would be raised, and raise none")
	cmd.Flags().BoolVar(&force, "force", false, "accept a floor that uses up a tenth of all tokens for ever")
	cmd.MarkFlagRequired("floor")
	cmd.MarkFlagsMutuallyExclusive("dry-run", "force")
	a.reasonFlag(cmd)
	return cmd
}

// repaired holds the tokens that a repair has raised or would raise, as JSON.
type repaired struct {
	Floor    int64      `json:"floor"`
	Raised   []riseLine `json:"raised"`
	NewAbove int64      `json:"new_above"`
	*record             // the record of the changes
}

type riseLine struct {
	Name string `json:"name"`
	From int64  `json:"from"`
	To   int64  `json:"to"`
}

func newRepaired(floor int64, done tokens.Repaired) repaired {
	answer := repaired{Floor: floor, Raised: []riseLine{}, NewAbove: done.NewAbove}
	for _, t := range done.Tokens {
		answer.Raised = append(answer.Raised, riseLine{t.Name, t.Value, floor})
	}
	return answer
}

func (a *app) planRepair(ctx context.Context, l *ledger, floor int64) error {
	plan, err := l.Repair(ctx, floor, tokens.DryRun())
	if err != nil {
		return tooHigh(err)
	}
	answer := newRepaired(floor, plan)
	return a.write(answer, func() { a.printRepaired(answer, "would rise", "would rise") })
}

// printRepaired prints the names with increased tokens. several and one are the verb, in plural and singular.
func (a *app) printRepaired(done repaired, several, one string) {
	for _, r := range done.Raised {
		fmt.Fprintf(a.out, "%s: %d -> %d, %s of the highest\n", visible(r.Name), r.From, r.To, percent(r.To))
	}
	switch len(done.Raised) {
	case 0:
		fmt.Fprintf(a.out, "no name %s\n", one)
	case 1:
		fmt.Fprintf(a.out, "1 name %s\n", one)
	default:
		fmt.Fprintf(a.out, "%d names %s\n", len(done.Raised), several)
	}
	fmt.Fprintf(a.out, "new names begin above %d, %s of the highest\n", done.NewAbove, percent(done.NewAbove))
}

// percent returns the share of a name's token range that is below a token.
func percent(token int64) string {
	part := 100 * float64(token) / float64(sqlfence.MaxToken)
	if part < 0.1 {
		return "under 0.1 %"
	}
	return fmt.Sprintf("%.3g %%", part)
}
