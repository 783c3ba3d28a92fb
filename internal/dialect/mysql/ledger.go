package mysql

import (
	"github.com/sqlfence/sqlfence/internal/sqltext"
	recording "github.com/sqlfence/sqlfence/schema/issuers"
	"github.com/sqlfence/sqlfence/schema/mysql"
)

// createLedger: a name has at most 512 bytes, and one that were longer would be cut in
// silence where sql_mode is empty.
const createLedger = `CREATE TABLE IF NOT EXISTS ` + sqltext.LedgerTable + ` (
	name  varbinary(512) NOT NULL PRIMARY KEY,
	token bigint         NOT NULL
) ENGINE=InnoDB`

// ledgerTriggers: REPLACE fires that of DELETE. TRUNCATE fires none. A name gets its first token by an UPDATE of a row
// without one, or by an INSERT; what is read then, with a lock, is the newest that was committed. Without its LIMIT a
// session's sql_select_limit would have MariaDB read nothing.
func ledgerTriggers() []sqltext.Trigger { return sqltext.Triggers(mysql.Files, "*.sql") }

// issuers: who is the account and the host that the session has come from, as bytes, since no text of another
// character set is refused then; what is too long is cut. USER is the session's, also in a trigger.
func issuers() sqltext.Issuers {
	return sqltext.Issuers{
		Columns: []sqltext.IssuerColumn{{Name: sqltext.IssuedBy, Type: "varbinary(512)"},
			{Name: sqltext.IssuedAt, Type: "bigint"}},
		Triggers: sqltext.Triggers(recording.Files, "mysql/*.sql"),
		Read:     "issued_by, " + Text.Micros("issued_at"),
	}
}
