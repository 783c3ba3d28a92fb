package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sqlfence/sqlfence/lease"
)

func (a *app) leasesRelease() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "release KEY --reason TEXT",
		Short: "End the lease of a key, so that another can take it",
		Long: `End the live lease of a key, for any holder, so that another can take it. Its holder
notices when it next extends the lease. Until then it may go on writing: its writes are refused
from the next token on, which the next holder gets, or at once ` + "`sqlfence tokens issue KEY`" + `.
If no holder has the lease, the status is 3.`,
		Example: `  sqlfence leases release books --reason "worker-3's machine is gone"`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withLeases(func(leases *lease.Leases) error {
				held, found, err := leases.Lookup(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				if found {
					err = leases.Release(cmd.Context(), held.LockID)
					found = !errors.Is(err, lease.ErrNotHeld) // it has ended in between
				}
				if !found {
					return no(a.write(struct {
						Released bool   `json:"released"`
						Key      string `json:"key"`
					}{false, args[0]}, func() { fmt.Fprintf(a.out, "%s isn't held\n", visible(args[0])) }))
				}
				if err != nil {
					return err
				}
				return a.writeDone(struct {
					Released bool `json:"released"`
					leaseRow
					record
				}{true, newLeaseRow(held), a.record()}, "released the lease of "+held.Token.String(), func() {
					fmt.Fprintf(a.out, "released %s, which %s held with token %d\n", visible(held.Key),
						visible(held.Holder),
						held.Token.Value)
				})
			})
		},
	}
	a.reasonFlag(cmd)
	return cmd
}
