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
		Short: "Look for what is wrong with the registered tables, and for ways around the fence",
		Long: `Compare registered tables with what the database has, and look for ways around the fence,
as verify.Check does: docs/verify.md has all findings. It writes nothing. With a fault
the status is 3, with --strict also with a warning. With several --tables it also says
which tables the programs register differently.

Without --table and --tables it looks at the ledger, and at each table with a fence
column fence_token or a seal, as far as that can be done without the rules.`,
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
	cmd.Flags().BoolVar(&strict, "strict", false, "take a warning for a fault")
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
