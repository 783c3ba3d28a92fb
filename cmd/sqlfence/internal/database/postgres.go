package database

import (
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx

	"github.com/sqlfence/sqlfence"
	pg "github.com/sqlfence/sqlfence/internal/dialect/postgres"
)

var postgres = &Database{
	Name:    "postgres",
	schemes: []string{"postgres://", "postgresql://"},
	driver:  "pgx",
	nowhere: "postgres://127.0.0.1",
	Dialect: sqlfence.Postgres,
	Text:    pg.Text,
	parse:   parsePostgres,
	leases:  listening,
	waits:   waitsPostgres,
	LaterFiles: map[string]string{
		"00004_ledger_function.up.sql": `SELECT 1 FROM pg_catalog.pg_proc p WHERE p.proname = 'sqlfence_turns_v1'
AND p.pronamespace = (SELECT c.relnamespace FROM pg_catalog.pg_class c ` +
			`WHERE c.oid = pg_catalog.to_regclass('fencing_tokens'))
AND (SELECT COUNT(*) FROM pg_catalog.pg_trigger g WHERE g.tgrelid = pg_catalog.to_regclass('fencing_tokens') ` +
			`AND g.tgname IN ('sqlfence_turn_v1', 'sqlfence_kept_v1', 'sqlfence_floor_v1') ` +
			`AND g.tgenabled = 'A') = 3 LIMIT 1`,
		"00005_token_procedures.up.sql": procedure("sqlfence_issue"),
		"00006_lease_procedures.up.sql": procedure("sqlfence_lease_acquire"),
	},
}

func procedure(name string) string {
	return "SELECT 1 FROM pg_catalog.pg_proc p WHERE p.proname = '" + name + "' AND p.prokind = 'p' " +
		"AND p.pronamespace = (SELECT c.relnamespace FROM pg_catalog.pg_class c " +
		"WHERE c.oid = pg_catalog.to_regclass('fencing_tokens')) LIMIT 1"
}

// parsePostgres returns the URL unchanged, and refuses a URL if pgx finds a different password in it, for example
// because of a second @. The driver's errors would then show a part of the password as the host.
func parsePostgres(dsn string, _ bool) (string, []string, error) {
	u, secrets, err := parseURL(dsn)
	if err != nil {
		return "", nil, err
	}
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		reason := err.Error()
		reason = reason[strings.LastIndex(reason, "`: ")+1:] // after the name itself
		return "", secrets, errors.New("a part of the data source name is invalid" + reason)
	}
	if password, _ := u.User.Password(); password != "" && !slices.Contains(secrets, cfg.Password) {
		return "", secrets, errURL
	}
	return dsn, secrets, nil
}
