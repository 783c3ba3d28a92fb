package schema

import (
	"database/sql"
	"encoding/json"

	"github.com/sqlfence/sqlfence/internal/fenced"
)

// Registration returns the tables that a fenced database was opened with, and their rules, as JSON. The command
// line reads it with --tables, in place of the tables and rules on its own line:
//
//	{"dialect": "PostgreSQL", "tables": [{"table": "books", "rules": ["row-fence:fence_token", "ledger"]}]}
//
// Names are as the database stores them, and the rules are in one order, so that programs which register a table in
// the same way have the same text for it; `sqlfence verify` says where two don't. Options that aren't about a table
// have no part in it, but for the schema of [sqlfence.WithSchema]. docs/cli.md has how to write the file.
//
// It sends nothing to the database, and may be called by several goroutines at once. A nil db, and one that
// sqlfence hasn't opened, are [sqlfence.ErrInvalid].
func Registration(db *sql.DB) ([]byte, error) {
	s, err := fenced.SettingsOf("schema.Registration", db)
	if err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(s.Registration(), "", "  ")
	return append(text, '\n'), err
}
