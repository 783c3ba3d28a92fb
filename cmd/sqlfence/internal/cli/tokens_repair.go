package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

func (a *app) tokensRepair() *cobra.Command {
	var reason string
	var floor int64
	cmd := &cobra.Command{
		Use:   "repair --floor N --reason TEXT",
		Short: "Raise all tokens to a floor, after a restore that may have lost some",
		Long: `Raise every token below the floor to the floor, and have new names begin above it: after a
restore from a dump or a copy of a file, and after a failover that may have lost tokens. The
floor is at least the highest token that may ever have been issued.`,
		Example: `  sqlfence tokens repair --floor 5000 --reason "restored last night's dump"`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withLedger(func(l *ledger) error {
				if err := l.Repair(cmd.Context(), floor); err != nil {
					return tooHigh(err)
				}
				r := newRecord(reason)
				return a.writeDone(struct {
					Floor int64 `json:"floor"`
					record
				}{floor, r}, fmt.Sprintf("raised all tokens to %d", floor), r, func() {
					fmt.Fprintf(a.out, "no token is below %d\n", floor)
				})
			})
		},
	}
	cmd.Flags().Int64Var(&floor, "floor", 0, "the floor, from 1 on")
	cmd.MarkFlagRequired("floor")
	reasonFlag(cmd, &reason)
	return cmd
}
