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

// ledgerTriggers returns the ledger's triggers. INSERT OR REPLACE of an existing name deletes the row and fires no
// DELETE trigger. So a trigger before each INSERT stores the row's token in [sqltext.SQLiteLedgerState], and a trigger
// after it, which an upsert that updates or ignores the row doesn't fire, compares the tokens. The name is stored as
// inserted: in a ledger created without sqlfence 'Books' may equal 'books', but that table compares bytes.
func ledgerTriggers() []sqltext.Trigger { return sqltext.Triggers(sqlite.Files, "*.sql") }

// issuers has no column for the session, because SQLite has no sessions.
func issuers() sqltext.Issuers {
	return sqltext.Issuers{
		Columns:  []sqltext.IssuerColumn{{Name: sqltext.IssuedAt, Type: "bigint"}},
		Triggers: sqltext.Triggers(recording.Files, "sqlite/*.sql"),
		Read:     "NULL, " + Text.Micros("issued_at"),
	}
}
