package mysql

import (
	"github.com/sqlfence/sqlfence/internal/sqltext"
	recording "github.com/sqlfence/sqlfence/schema/issuers"
	"github.com/sqlfence/sqlfence/schema/mysql"
)

// createLedger creates the ledger's table. A token's name has at most 512 bytes; with an empty sql_mode the server
// would cut a longer name without an error.
const createLedger = `CREATE TABLE IF NOT EXISTS ` + sqltext.LedgerTable + ` (
	name  varbinary(512) NOT NULL PRIMARY KEY,
	token bigint         NOT NULL
) ENGINE=InnoDB`

// ledgerTriggers returns the triggers of the ledger. REPLACE fires the trigger for DELETE; TRUNCATE fires no trigger.
// If an INSERT, or an UPDATE of a row with the token NULL or 0, gives a name its first token, a trigger compares the
// token with the newest committed lower bound ([sqltext.LowerBound]), which it reads with a lock. Without the query's
// LIMIT a session's sql_select_limit could make MariaDB read no row.
func ledgerTriggers() []sqltext.Trigger { return sqltext.Triggers(mysql.Files, "*.sql") }

// issuers records the account and the host from which the session was opened. They are stored as bytes, because the
// server then rejects no text of another character set; a too long text is cut. USER returns the session's account,
// even inside a trigger.
func issuers() sqltext.Issuers {
	return sqltext.Issuers{
		Columns: []sqltext.IssuerColumn{{Name: sqltext.IssuedBy, Type: "varbinary(512)"},
			{Name: sqltext.IssuedAt, Type: "bigint"}},
		Triggers: sqltext.Triggers(recording.Files, "mysql/*.sql"),
		Read:     "issued_by, " + Text.Micros("issued_at"),
	}
}
