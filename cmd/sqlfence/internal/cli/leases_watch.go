package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqlfence/sqlfence/lease"
)

func (a *app) leasesWatch() *cobra.Command {
	var w watch
	cmd := &cobra.Command{
		Use:   "watch [KEY]",
		Short: "Write the live leases, and then each change of a holder, a line each",
		Long: `Write the live leases, or that of KEY, and then a line whenever one is taken by another
holder or has ended, until it is interrupted. Extensions are no changes. What lies between two
questions isn't seen.`,
		Example: `  sqlfence leases watch books
  sqlfence leases watch books --changes 2   # whoever holds it now, and the next change`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withLeases(func(leases *lease.Leases) error {
				ask := func(ctx context.Context) (map[string]holding, []string, error) {
					found, err := leases.List(ctx)
					by, keys := make(map[string]holding), []string(nil)
					for _, i := range found {
						if len(args) == 0 || i.Key == args[0] {
							by[i.Key] = holding{i.Key, i.Token.Value, i.Token.Fence(), i.Holder, moment(i.AcquiredAt)}
							keys = append(keys, i.Key)
						}
					}
					return by, keys, err
				}
				return watchAll(cmd.Context(), a, w, ask, a.showHolding)
			})
		},
	}
	w.flags(cmd)
	return cmd
}

// A holding is a lease without what changes while it is held.
type holding struct {
	Key        string `json:"key"`
	Token      int64  `json:"token"`
	Fence      string `json:"fence"`
	Holder     string `json:"holder"`
	AcquiredAt string `json:"acquired_at"`
}

func (a *app) showHolding(h holding, gone bool) error {
	at := moment(time.Now())
	return a.write(struct {
		At string `json:"at"`
		holding
		Gone bool `json:"gone"`
	}{at, h, gone}, func() {
		what := fmt.Sprintf("token %d  held by %s since %s", h.Token, visible(h.Holder), h.AcquiredAt)
		if gone {
			what = fmt.Sprintf("token %d  free", h.Token)
		}
		fmt.Fprintf(a.out, "%s  %s  %s\n", at, visible(h.Key), what)
	})
}
