package cli

import (
	"cmp"
	"database/sql"
	"fmt"
	"log/slog"
	"slices"

	"github.com/spf13/cobra"

	"github.com/sqlfence/sqlfence/cmd/sqlfence/internal/database"
	"github.com/sqlfence/sqlfence/verify"
)

func (a *app) verify() *cobra.Command {
	var strict bool
	cmd := &cobra.Command{
		Use:   "verify [--table NAME=RULES…]",
		Short: "Look for faults of registered tables, and ways around the fence",
		Long: `Compare registered tables with the database, and look for ways around the fence, as verify.Check does:
docs/data/verify.md lists all findings. The command writes nothing. With a fault the status is 3, with --strict also
with a warning. With several --tables the command also compares what the programs register.

Without --table and --tables the command looks at the ledger, and at each table with a column fence_token. Then it
knows neither the rules nor the names of the tokens. It checks the type of the column, the ways around the table,
whether a seal is complete, and the stored tokens if the ledger has a token under the table's name. It can't find a
fence column with another name, a seal of other rules, or a table with Ledger, Claim, Serial or EditLock alone.`,
		Example: `  sqlfence verify
  sqlfence verify --table "books=row-fence:fence_token,ledger"
  sqlfence verify --strict --json --table books=row-fence:fence_token,sealed
  sqlfence verify --tables shop.json --tables importer.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var differ []verify.Finding
			look := func(_ database.Source, db *sql.DB) error {
				found, err := verify.Check(cmd.Context(), db)
				if err != nil {
					return err
				}
				found = append(found, differ...)
				slices.SortStableFunc(found, func(f, g verify.Finding) int { return cmp.Compare(g.Level, f.Level) })
				return a.writeFindings(found, strict)
			}
			if a.registers() {
				return a.withTables(false, &differ, look)
			}
			return a.withDatabase(false, look, withoutTables)
		},
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "end with status 3 also after a warning")
	a.tableFlag(cmd)
	return cmd
}

// A finding is a verify.Finding as JSON.
type finding struct {
	Severity string `json:"severity"`
	Code     string `json:"code"`
	Table    string `json:"table"`
	Problem  string `json:"problem"`
	Remedy   string `json:"remedy"`
	SQL      string `json:"sql"`
}

// findingsOf returns findings as JSON has them, and whether one is of the level bad or worse.
func findingsOf(found []verify.Finding, bad slog.Level) (all []finding, failed bool) {
	all = []finding{}
	for _, f := range found {
		all = append(all, finding{f.Severity(), f.Code, f.Table, f.Problem, f.Remedy, f.SQL})
		failed = failed || f.Level >= bad
	}
	return all, failed
}

func (a *app) writeFindings(found []verify.Finding, strict bool) error {
	bad := slog.LevelError
	if strict {
		bad = slog.LevelWarn
	}
	answer, failed := findingsOf(found, bad)
	err := a.write(answer, func() {
		paragraph := func(text string) string { return folded("  "+visible(text), a.out.columns(), "  ") }
		for _, f := range answer {
			fmt.Fprintf(a.out, "%s: %s (%s)\n%s\n%s\n", f.Severity, visible(cmp.Or(f.Table, "the database")), f.Code,
				paragraph(f.Problem), paragraph(f.Remedy))
			if f.SQL != "" {
				fmt.Fprintf(a.out, "  %s\n", f.SQL)
			}
		}
		if len(answer) == 0 {
			fmt.Fprintln(a.out, "nothing found")
		}
	})
	if failed {
		return no(err)
	}
	return err
}
