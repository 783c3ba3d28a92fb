package postgres

import (
	"github.com/sqlfence/sqlfence/internal/sqltext"
	files "github.com/sqlfence/sqlfence/schema/issuers"
)

// issuers: a row that is inserted has them by the columns' defaults, which cost less than a trigger, as Issue inserts
// also where the name is there. The trigger doesn't fire in a session that calls itself a replica, which copies what
// another server has recorded. It names the columns, so that these can't be dropped, or get another type, without it.
var issuers = sqltext.Issuers{
	Columns: []sqltext.IssuerColumn{{Name: sqltext.IssuedBy, Type: "text"},
		{Name: sqltext.IssuedAt, Type: "timestamp with time zone"}},
	Whole: recordIssuers,
	Read:  "issued_by, " + Text.Micros("issued_at"),
}

// IssuedTrigger is the name of the trigger, and of its function.
const IssuedTrigger = "sqlfence_issued_v1"

// IssuersAsCreated is a condition: the trigger g, of the ledger c in the schema n, is what [recordIssuers] creates.
var IssuersAsCreated = "g.tgname = '" + IssuedTrigger + "' AND g.tgtype = 19 AND g.tgenabled IN ('O', 'A') AND " +
	"EXISTS (SELECT FROM pg_catalog.pg_proc AS t WHERE t.oid = g.tgfoid AND t.pronamespace = n.oid AND t.proname = '" +
	IssuedTrigger + "' AND " + asCreated("t", bodyOf(recordIssuers, "body text := "), "IS NULL") + ")"

// recordIssuers adds the columns, the function and the trigger to the table fencing_tokens that the search path
// leads to, or brings them up to date. Where all is there it locks nothing, and needs no privilege.
var recordIssuers = shipped(files.Files, "postgres/00001_ledger_issuers.up.sql")
