package cli

import (
	"database/sql"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/cmd/sqlfence/internal/database"
)

func (a *app) explain() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain [SQL | -]",
		Short: "Print what would be sent for a statement, or why it is refused",
		Long: `Print the SQL that sqlfence would send for a statement, with its guard, or the reason and the place of
a refusal. The statement is an argument, or comes from the standard input. Before a statement that begins with a
comment (-- …), write two dashes. Nothing is sent to the database. If the statement is refused, the status is 3.
Control characters are shown as in a Go string, and a terminal gets the part of a long line around the place.`,
		Example: `  sqlfence explain --dialect postgres --table books=row-fence:fence_token \
    'UPDATE books SET price = 30'
  sqlfence explain --dialect sqlite --table books=ledger,key:id < statement.sql`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			query, err := a.statement(args)
			if err != nil {
				return err
			}
			if strings.TrimSpace(query) == "" {
				return usage(errors.New("there is no statement: pass it as an argument, or on the standard input"))
			}
			return a.withTables(true, nil, func(_ database.Source, db *sql.DB) error {
				x, err := sqlfence.Explain(db, query)
				if err != nil {
					return err
				}
				return a.writeExplanation(query, x)
			})
		},
	}
	a.tableFlag(cmd)
	a.dialectFlag(cmd)
	return cmd
}

// statement returns the statement, without the line's end that an editor adds.
func (a *app) statement(args []string) (string, error) {
	if len(args) == 1 && args[0] != "-" {
		return args[0], nil
	}
	text, err := io.ReadAll(a.in)
	if err != nil {
		return "", fmt.Errorf("standard input: %w", err)
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}

// An explanation is the result of the command explain. If the statement is refused, Offset is the position of the
// reason in bytes from the statement's start, or -1 if the reason has no position; Line and Column count from 1, in
// characters.
type explanation struct {
	Verdict string   `json:"verdict"` // guarded, passed or refused
	Tables  []string `json:"tables"`
	SQL     string   `json:"sql"`
	Table   string   `json:"table,omitempty"`
	Reason  string   `json:"reason,omitempty"`
	Offset  *int     `json:"offset,omitempty"`
	Line    int      `json:"line,omitempty"`
	Column  int      `json:"column,omitempty"`
}

func (a *app) writeExplanation(query string, x sqlfence.Explanation) error {
	answer := explanation{Verdict: x.Kind.String(), Tables: append([]string{}, x.Tables...), SQL: x.SQL}
	if x.Err == nil {
		return a.write(answer, func() {
			what := answer.Verdict
			if len(x.Tables) > 0 {
				what += ", writes " + visible(strings.Join(x.Tables, ", "))
			}
			fmt.Fprintf(a.out, "-- %s\n%s\n", what, x.SQL)
		})
	}
	answer.Reason = x.Err.Error()
	var refusal *sqlfence.UnguardableError
	place := ""
	if errors.As(x.Err, &refusal) {
		answer.Table, answer.Reason, answer.Offset = refusal.Table, refusal.Reason, &refusal.Offset
		place = answer.point(query, a.out.columns())
	}
	err := a.write(answer, func() {
		what := answer.Verdict
		if answer.Table != "" {
			what += ", table " + visible(answer.Table)
		}
		fmt.Fprintf(a.out, "%s\n%s", folded(what+": "+visible(answer.Reason), a.out.columns(), "  "), place)
	})
	return no(err)
}
