package schema

import (
	"database/sql"
	"encoding/json"

	"github.com/sqlfence/sqlfence/internal/fenced"
)

// Registration returns the tables of a fenced database, and their rules, as JSON. The command sqlfence reads this JSON
// with --tables, in place of tables and rules as arguments:
//
//	{"dialect": "PostgreSQL", "tables": [{"table": "books", "rules": ["row-fence:fence_token", "ledger"]}]}
//
// Names are as the database stores them, and the rules have a fixed order. So programs that register a table in the
// same way produce equal JSON for the table; the command `sqlfence verify` reports differences. Of the options that
// don't concern a table, the JSON contains only the schema of [sqlfence.WithSchema]. docs/cli.md describes the file.
//
// Registration sends nothing to the database, and is safe for concurrent use. A nil db, or a database that sqlfence
// hasn't opened, is [sqlfence.ErrInvalid].
func Registration(db *sql.DB) ([]byte, error) {
	s, err := fenced.SettingsOf("schema.Registration", db)
	if err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(s.Registration(), "", "  ")
	return append(text, '\n'), err
}
