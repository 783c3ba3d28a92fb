package database

import (
	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

var postgres = &Database{
	Name:    "postgres",
	schemes: []string{"postgres://", "postgresql://"},
	driver:  "pgx",
	nowhere: "postgres://127.0.0.1",
	Dialect: sqlfence.Postgres,
	Text:    sqltext.Postgres,
	parse: func(dsn string, _ bool) (string, []string, error) {
		_, secrets, err := parseURL(dsn)
		return dsn, secrets, err
	},
	leases:    listening,
	isMissing: func(err error) bool { return dberr.SQLState(err) == dberr.UndefinedTable },
	LaterFiles: map[string]string{
		"00004_ledger_function.up.sql": "SELECT 1 FROM pg_catalog.pg_proc p WHERE p.proname = 'sqlfence_newest_v1' AND pg_catalog.pg_function_is_visible(p.oid)",
	},
}
