package sqlite

import (
	"github.com/sqlfence/sqlfence/internal/sqltext"
	recording "github.com/sqlfence/sqlfence/schema/issuers"
	"github.com/sqlfence/sqlfence/schema/sqlite"
)

// ledgerState creates the table that the triggers need.
const ledgerState = "CREATE TABLE IF NOT EXISTS " + sqltext.SQLiteLedgerState + ` (
	name  text   NOT NULL PRIMARY KEY,
	token bigint NOT NULL
)`

// ledgerTriggers: an upsert fires those of INSERT before it finds the row, whatever it is going to
// make of it; only REPLACE then inserts. The name is remembered as it is inserted: to a ledger that others have made
// 'Books' may be 'books'.
func ledgerTriggers() []sqltext.Trigger { return sqltext.Triggers(sqlite.Files, "*.sql") }

// issuers: SQLite knows of no sessions, so that there is no who.
func issuers() sqltext.Issuers {
	return sqltext.Issuers{
		Columns:  []sqltext.IssuerColumn{{Name: sqltext.IssuedAt, Type: "bigint"}},
		Triggers: sqltext.Triggers(recording.Files, "sqlite/*.sql"),
		Read:     "NULL, " + Text.Micros("issued_at"),
	}
}
