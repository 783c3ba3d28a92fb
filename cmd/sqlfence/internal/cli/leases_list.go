package cli

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/sqlfence/sqlfence/lease"
)

func (a *app) leasesList() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the live leases",
		Example: `  sqlfence leases list`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withLeases(func(leases *lease.Leases) error {
				found, err := leases.List(cmd.Context())
				if err != nil {
					return err
				}
				answer := []leaseRow{}
				for _, i := range found {
					answer = append(answer, newLeaseRow(i))
				}
				return a.write(answer, func() {
					var rows [][]string
					for _, l := range answer {
						rows = append(rows, []string{l.Key, strconv.FormatInt(l.Token, 10), l.Holder,
							l.AcquiredAt, l.ExpiresAt})
					}
					a.table([]string{"KEY", "TOKEN", "HOLDER", "SINCE", "UNTIL"}, rows)
				})
			})
		},
	}
}
