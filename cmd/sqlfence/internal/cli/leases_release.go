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
		Long: `End the live lease of a key, so that another process can take the lease. The holder notices the loss
when it next extends the lease. Until then the holder may continue to write. Its writes are refused once the next
holder has a token, or at once after ` + "`sqlfence tokens issue KEY`" + `. If the key has no live lease, the
status is 3.`,
		Example: `  sqlfence leases release books --reason "worker-3's machine is gone"`,
		Args:    cobra.ExactArgs(1),

		ValidArgsFunction: first(a.completeKeys),

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
