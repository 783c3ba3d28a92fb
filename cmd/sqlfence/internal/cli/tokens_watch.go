package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

func (a *app) tokensWatch() *cobra.Command {
	var w watch
	cmd := &cobra.Command{
		Use:   "watch [NAME]",
		Short: "Write the tokens, and then each change, a line each",
		Long: `Write the newest token of each name, or of NAME, and then a line whenever one has
changed, until it is interrupted. What lies between two questions isn't seen.`,
		Example: `  sqlfence tokens watch books`,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withLedger(func(l *ledger) error {
				ask := func(ctx context.Context) (map[string]tokenRow, []string, error) {
					found, err := l.list(ctx)
					by, names := make(map[string]tokenRow), []string(nil)
					for _, t := range found {
						if len(args) == 0 || t.Name == args[0] {
							by[t.Name] = t
							names = append(names, t.Name)
						}
					}
					return by, names, err
				}
				return watchAll(cmd.Context(), a, w, ask, a.showToken)
			})
		},
	}
	w.flags(cmd)
	return cmd
}

// showToken writes a line of watch. A name never goes while its ledger is there.
func (a *app) showToken(t tokenRow, gone bool) error {
	at := moment(time.Now())
	return a.write(struct {
		At string `json:"at"`
		tokenRow
		Gone bool `json:"gone"`
	}{at, t, gone}, func() {
		if gone {
			fmt.Fprintf(a.out, "%s  %s  gone\n", at, visible(t.Name))
			return
		}
		fmt.Fprintf(a.out, "%s  %s  %d\n", at, visible(t.Name), t.Value)
	})
}
