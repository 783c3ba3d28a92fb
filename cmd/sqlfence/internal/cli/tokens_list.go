package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/sqlfence/sqlfence"
)

func (a *app) tokensList() *cobra.Command {
	var limit int
	var onlyWorn bool
	cmd := &cobra.Command{
		Use:   "list [PREFIX]",
		Short: "List the newest token of each name, or of those that begin with PREFIX",
		Example: `  sqlfence tokens list jobs/ --limit 20
  sqlfence tokens list --worn   # what has few tokens left
  sqlfence tokens list --json | jq -r '.[] | select(.value > 1000) | .name'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 0 {
				return usage(errors.New("--limit has to be 0 or more"))
			}
			return a.withLedger(func(l *ledger) error {
				isWanted := func(t tokenRow) bool { return !onlyWorn || worn(t.Value) != "" }
				found, more, err := l.first(cmd.Context(), slices.Concat(args, []string{""})[0], limit, isWanted)
				if err != nil {
					return err
				}
				if err := a.write(found, func() { a.tokenTable(found) }); err != nil || !more {
					return err
				}
				_, err = fmt.Fprintf(a.errs, "sqlfence: there are more than these %d\n", limit)
				return err
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 0, "list so many names at most; 0 for all")
	cmd.Flags().BoolVar(&onlyWorn, "worn", false, "list only names that are retired, or near the highest token")
	return cmd
}

// first returns the first names that begin with prefix and are wanted, up to a limit over 0, and whether there are
// more.
func (l *ledger) first(
	ctx context.Context, prefix string, limit int, isWanted func(tokenRow) bool,
) (found []tokenRow, more bool, err error) {
	found = []tokenRow{}
	for token, err := range l.List(ctx, prefix) {
		switch row := newTokenRow(token); {
		case err != nil:
			return nil, false, err
		case !isWanted(row):
		case limit > 0 && len(found) == limit:
			return found, true, nil
		default:
			found = append(found, row)
		}
	}
	return found, false, nil
}

func (a *app) tokenTable(found []tokenRow) {
	var rows [][]string
	for _, t := range found {
		rows = append(rows, []string{t.Name, strconv.FormatInt(t.Value, 10), t.Fence, worn(t.Value)})
	}
	header := []string{"NAME", "TOKEN", "FENCE", "RANGE"}
	if !slices.ContainsFunc(rows, func(row []string) bool { return row[3] != "" }) {
		header = header[:3]
		for i := range rows {
			rows[i] = rows[i][:3]
		}
	}
	a.table(header, rows)
}

// worn says of a token near the end of its range how much of that is used up; empty for another.
func worn(token int64) string {
	switch {
	case token > sqlfence.MaxToken:
		return "retired"
	case token >= sqlfence.WarnToken:
		return percent(token) + " used up"
	}
	return ""
}
