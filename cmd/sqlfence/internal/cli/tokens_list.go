package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/tokens"
)

func (a *app) tokensList() *cobra.Command {
	var limit int
	var onlyWorn bool
	cmd := &cobra.Command{
		Use:   "list [PREFIX]",
		Short: "List the newest token of each name, or of names with a prefix",
		Long: `List the newest token of each name, or of each name that begins with PREFIX. If the database records
issuers (sqlfence init --issuers), the list has who raised the token, and when.`,
		Example: `  sqlfence tokens list jobs/ --limit 20
  sqlfence tokens list --worn   # names with few tokens left
  sqlfence tokens list --json | jq -r '.[] | select(.value > 1000) | .name'`,
		Args: cobra.MaximumNArgs(1),

		ValidArgsFunction: first(a.completeNames),

		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 0 {
				return usage(errors.New("--limit has to be 0 or more"))
			}
			return a.withLedger(func(l *ledger) error {
				found, more := []listedRow{}, false
				for issued, err := range l.ListIssued(cmd.Context(), slices.Concat(args, []string{""})[0]) {
					if err != nil {
						return err
					}
					row := newListedRow(issued)
					if onlyWorn && nearLimit(row.Value) == "" {
						continue
					}
					if more = limit > 0 && len(found) == limit; more {
						break
					}
					found = append(found, row)
				}
				if err := a.write(found, func() { a.tokenTable(found) }); err != nil || !more {
					return err
				}
				_, err := fmt.Fprintf(a.errs, "sqlfence: there are more than these %d\n", limit)
				return err
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 0, "list at most this number of names; 0 for all")
	cmd.Flags().BoolVar(&onlyWorn, "worn", false, "list only names that are retired, or near the highest token")
	return cmd
}

// A listedRow is the newest token of a name, with the issuer and the time if the ledger records them.
type listedRow struct {
	tokenRow
	IssuedBy string `json:"issued_by,omitempty"`
	IssuedAt string `json:"issued_at,omitempty"`
}

func newListedRow(i tokens.Issued) listedRow {
	row := listedRow{tokenRow: newTokenRow(i.Token), IssuedBy: i.By}
	if !i.At.IsZero() {
		row.IssuedAt = moment(i.At)
	}
	return row
}

// tokenTable writes the table. After the first three columns, it omits empty columns.
func (a *app) tokenTable(found []listedRow) {
	rows := [][]string{{"NAME", "TOKEN", "FENCE", "RANGE", "ISSUED AT", "ISSUED BY"}}
	for _, t := range found {
		rows = append(rows, []string{t.Name, strconv.FormatInt(t.Value, 10), t.Fence, nearLimit(t.Value),
			t.IssuedAt, t.IssuedBy})
	}
	for i := len(rows[0]) - 1; i > 2; i-- {
		if !slices.ContainsFunc(rows[1:], func(row []string) bool { return row[i] != "" }) {
			for j := range rows {
				rows[j] = slices.Delete(rows[j], i, i+1)
			}
		}
	}
	a.table(rows[0], rows[1:])
}

// nearLimit returns how much of its range a token near the limit has used up; empty for other tokens.
func nearLimit(token int64) string {
	switch {
	case token > sqlfence.MaxToken:
		return "retired"
	case token >= sqlfence.WarnToken:
		return percent(token) + " used up"
	}
	return ""
}
