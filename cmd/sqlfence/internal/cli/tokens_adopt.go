package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/sqlfence/sqlfence"
)

func (a *app) tokensAdopt() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "adopt NAME TOKEN --reason TEXT",
		Short: "Raise a name to a token that another service has issued",
		Long: `Raise a name to a token of another service, such as a revision of etcd. TOKEN is a number, with or
without leading zeros. A missing name is added. Lower tokens are then refused as after tokens issue. If the ledger has
a newer token, the status is 3 and nothing is changed. The same holds for the first token of a name if it isn't above
the floor, which a deletion or a repair has raised.`,
		Example: `  sqlfence tokens adopt books 4711 --reason "etcd's revision after the move"`,
		Args:    cobra.ExactArgs(2),

		ValidArgsFunction: first(a.completeNames),

		RunE: func(cmd *cobra.Command, args []string) error {
			value, err := strconv.ParseInt(args[1], 10, 64)
			if err != nil {
				return usage(fmt.Errorf("%q is no token: want a number", args[1]))
			}
			token := sqlfence.Token{Name: args[0], Value: value}
			return a.withLedger(func(l *ledger) error {
				err := l.Adopt(cmd.Context(), token)
				if stale := (*sqlfence.StaleError)(nil); errors.As(err, &stale) {
					return a.notAdopted(cmd.Context(), l, stale)
				}
				if err != nil {
					return tooHigh(err)
				}
				return a.writeDone(struct {
					Adopted bool `json:"adopted"`
					tokenRow
					record
				}{true, newTokenRow(token), a.record()}, "adopted "+token.String(), func() {
					fmt.Fprintf(a.out, "%s\n", visible(token.String()))
				})
			})
		},
	}
	a.reasonFlag(cmd)
	return cmd
}

// tooHigh marks a token above [sqlfence.MaxToken] as a mistake in the command line.
func tooHigh(err error) error {
	if errors.Is(err, sqlfence.ErrTokenLimit) {
		return usage(err)
	}
	return err
}

// notAdopted reports that the ledger has a newer token of the name, or that the name has none and the token isn't above
// the lower bound for first tokens, which [tokens.Store.Delete] and [tokens.Store.Repair] set.
func (a *app) notAdopted(ctx context.Context, l *ledger, stale *sqlfence.StaleError) error {
	newest, floor := sqlfence.Token{Name: stale.Token.Name, Value: stale.Current}, int64(0)
	current, err := l.Current(ctx, newest.Name)
	if errors.Is(err, sqlfence.ErrUnknownName) || err == nil && current.Value == 0 {
		newest.Value, floor = 0, stale.Current
	}
	return no(a.write(struct {
		Adopted bool `json:"adopted"`
		tokenRow
		Floor int64 `json:"floor,omitempty"`
	}{false, newTokenRow(newest), floor}, func() {
		name := visible(newest.Name)
		switch {
		case newest.Value > sqlfence.MaxToken:
			fmt.Fprintf(a.out, "%s was retired; take another name\n", name)
		case newest.Value == 0:
			fmt.Fprintf(a.out, "%s has no token, and its first has to be above the floor, %d\n", name, floor)
		default:
			fmt.Fprintf(a.out, "the newest token of %s is %d already\n", name, newest.Value)
		}
	}))
}
