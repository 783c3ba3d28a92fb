package cli

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/cmd/sqlfence/internal/database"
	"github.com/sqlfence/sqlfence/verify"
)

const dsnVariable = "SQLFENCE_DSN"

// source returns the command's database. If create is set, a missing database file is created.
func (a *app) source(create bool) (database.Source, error) {
	dsn, err := a.dataSource()
	if err != nil {
		return database.Source{}, err
	}
	if dsn == "" {
		return database.Source{}, usage(errors.New("which database? Set " + dsnVariable +
			", or give --dsn-file or --dsn"))
	}
	s, err := database.Parse(dsn, create)
	a.errs.Hide(s.Secrets)
	if err != nil {
		return s, usage(err)
	}
	if s, err = a.inSchema(s); err != nil {
		return s, err
	}
	if a.dsn != "" && len(s.Secrets) > 0 {
		return s, usage(errors.New("--dsn has a password, which every user of this machine can see and your shell " +
			"remembers: put the data source name into " + dsnVariable + " or a file for --dsn-file"))
	}
	return s, nil
}

func (a *app) inSchema(s database.Source) (database.Source, error) {
	if a.schema == "" {
		return s, nil
	}
	s, err := s.In(a.schema)
	if err != nil {
		return s, usage(fmt.Errorf("--schema: %w", err))
	}
	return s, nil
}

// dataSource returns the data source name that was given; empty if there is none.
func (a *app) dataSource() (string, error) {
	if a.dsnFile == "" {
		return cmp.Or(a.dsn, os.Getenv(dsnVariable)), nil
	}
	text, err := os.ReadFile(a.dsnFile)
	if err != nil {
		return "", usage(fmt.Errorf("--dsn-file: %w", err))
	}
	dsn := strings.TrimSpace(string(text))
	if dsn == "" {
		return "", usage(fmt.Errorf("--dsn-file: %s is empty", a.dsnFile))
	}
	return dsn, nil
}

// withDatabase calls f with the command's database, which is fenced if there are options. If create is set, a missing
// database file is created.
func (a *app) withDatabase(create bool, f func(database.Source, *sql.DB) error, options ...sqlfence.Option) error {
	source, err := a.text(create)
	if err != nil {
		return err
	}
	db, err := source.Open(options...)
	if err != nil {
		return err
	}
	defer db.Close()
	return f(source, db)
}

// withoutTables has a database be fenced that registers no tables.
var withoutTables = sqlfence.WithMode(sqlfence.Enforce)

// withTables calls f with the command's database, opened by sqlfence with the tables of --tables and --table. It passes
// compared to [app.registered].
func (a *app) withTables(create bool, compared *[]verify.Finding, f func(database.Source, *sql.DB) error) error {
	options, err := a.registered(create, compared)
	if err != nil {
		return err
	}
	return a.withDatabase(create, f, options...)
}

func (a *app) dialectFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.dialect, "dialect", "",
		"without a database, the SQL of "+strings.Join(database.Names(), ", "))
	cmd.RegisterFlagCompletionFunc("dialect", cobra.FixedCompletions(database.Names(),
		cobra.ShellCompDirectiveNoFileComp))
}

// text returns the database that a command writes SQL for, from --dialect or from the data source name. If create is
// set, the data source name may name a missing file.
func (a *app) text(create bool) (database.Source, error) {
	if a.dialect == "" {
		return a.source(create)
	}
	d, err := database.Find(a.dialect)
	if err != nil {
		return database.Source{}, usage(fmt.Errorf("--dialect: %w", err))
	}
	return a.inSchema(d.Nowhere())
}
