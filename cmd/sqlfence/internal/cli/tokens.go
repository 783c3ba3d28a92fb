package cli

import (
	"database/sql"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/cmd/sqlfence/internal/database"
	"github.com/sqlfence/sqlfence/tokens"
)

func (a *app) tokens() *cobra.Command {
	return group("tokens", "List, issue, adopt, retire and delete fencing tokens",
		a.tokensList(), a.tokensIssue(), a.tokensAdopt(), a.tokensRotate(), a.tokensDelete(), a.tokensRepair())
}

// A tokenRow is the newest token of a name.
type tokenRow struct {
	Name  string `json:"name"`
	Value int64  `json:"value"`
	Fence string `json:"fence"` // the value as text, in 15 digits
}

func newTokenRow(t sqlfence.Token) tokenRow { return tokenRow{t.Name, t.Value, t.Fence()} }

// A ledger is the tokens of a database.
type ledger struct {
	*tokens.Store
	db     *sql.DB
	source database.Source
}

func (a *app) withLedger(f func(*ledger) error) error {
	return a.withDatabase(false, func(source database.Source, db *sql.DB) error {
		store, err := tokens.New(db, tokens.WithLogger(a.log))
		if err != nil {
			return err
		}
		return f(&ledger{store, db, source})
	})
}

// reasonFlag adds --reason, which has to be given.
func (a *app) reasonFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.reason, "reason", "", "why; written with user and time to the standard error, or with "+
		"--json to the JSON; not stored in the database")
	cmd.MarkFlagRequired("reason")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if strings.TrimSpace(a.reason) == "" {
			return usage(errors.New("--reason is empty"))
		}
		return run(cmd, args)
	}
}
