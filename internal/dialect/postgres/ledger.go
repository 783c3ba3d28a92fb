package postgres

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/sqlfence/sqlfence/internal/sqltext"
	recording "github.com/sqlfence/sqlfence/schema/issuers"
	"github.com/sqlfence/sqlfence/schema/postgres"
)

// What a PostgreSQL database may have besides the ledger's table: a function that asks the
// ledger at less cost than a statement can, and triggers that hold off those who raise
// tokens without taking the ledger's turn, and refuse to lower or to lose one. docs/adr/0015 and
// docs/adr/0030 have the reasons.

// CreateLedgerFunction creates both, for the table fencing_tokens that the search path
// leads to, or brings them up to date. It fails, and changes nothing, where the guard
// would not be the same: unless the table is an ordinary one, with a unique name that is
// compared byte by byte, and the role has the powers of its owner. The file's functions are texts for format, of the
// ledger's schema and of the ledger with its schema.
var CreateLedgerFunction = sqltext.Statements(postgres.Files, "00004_ledger_function.up.sql")[0]

// LedgerFunctionIsNamed is a condition: the function p is the one that guards call by its name, in the schema n.
const LedgerFunctionIsNamed = "p.pronamespace = n.oid AND p.proname = '" + sqltext.LedgerFunction +
	"' AND p.proargtypes " +
	"= '25 20 23 25 2205'::pg_catalog.oidvector"

// LedgerFunctionAsCreated and LedgerTriggerAsCreated are conditions: the function p, of [LedgerFunctionIsNamed],
// and the trigger g, of the ledger c in the schema n, are what [CreateLedgerFunction] creates. Each function
// belongs to a role that has the powers of the ledger's owner anyway.
var (
	LedgerFunctionAsCreated = "p.prorettype = 16 AND p.proargnames = '{wanted,given,number,nonce,asked}' AND " +
		"p.proargmodes IS NULL AND " + asCreated("p", ledgerBody(sqltext.LedgerFunction), "IS NULL")

	LedgerTriggerAsCreated = "pg_catalog.concat(g.tgname, ' ', g.tgtype) IN ('" + sqltext.LedgerTrigger + " 25', '" +
		sqltext.LedgerTruncateTrigger + " 34', '" + sqltext.LedgerFloorTrigger + " 21') " +
		"AND g.tgenabled = 'A' AND g.tgqual IS NULL AND g.tgattr = ''" +
		" AND EXISTS (SELECT FROM pg_catalog.pg_proc AS t WHERE t.oid = g.tgfoid AND t.pronamespace = n.oid AND " +
		"CASE WHEN g.tgname <> '" + sqltext.LedgerFloorTrigger + "' THEN " +
		"t.proname = '" + sqltext.LedgerTrigger + "' AND " + asCreated("t", ledgerBody(sqltext.LedgerTrigger), pathSet) +
		" ELSE t.proname = '" + sqltext.LedgerFloorTrigger + "' AND " +
		asCreated("t", ledgerBody(sqltext.LedgerFloorTrigger), pathSet) + " END)"
)

// ledgerBody is the body of one of the functions.
func ledgerBody(name string) string { return bodyOf(CreateLedgerFunction, "FUNCTION %1$I."+name+"(") }

// bodyOf is the body of a function in a statement, behind a text that stands in front of it.
func bodyOf(statement, front string) string {
	_, behind, _ := strings.Cut(statement, front)
	_, body, _ := strings.Cut(behind, "$function$")
	body, _, found := strings.Cut(body, "$function$")
	if !found {
		panic("sqlfence: no body behind " + front) // it is a part of the program
	}
	return body
}

// pathSet is what a function with a search path of its own has for settings.
const pathSet = `= '{"search_path=pg_catalog, pg_temp"}'`

// asCreated compares a function with a body by its hash, which is shorter: the text of a question that raises
// is in the server's log. What the function has is made into a text for format again, its percent signs first,
// so that no other body leads to the same text. Bytes are compared in the database's encoding: no conversion fails.
func asCreated(p, body, settings string) string {
	const ledger = "pg_catalog.concat(pg_catalog.replace(pg_catalog.quote_ident(n.nspname), '%', '%%'), '." +
		sqltext.LedgerTable + "')"
	text := "pg_catalog.replace(" + p + ".prosrc, '%', '%%')"
	text = "pg_catalog.replace(" + text + ", pg_catalog.quote_literal(" + ledger + "), '%2$L')"
	text = "pg_catalog.replace(" + text + ", " + ledger + ", '%1$I." + sqltext.LedgerTable + "')"
	hash := sha256.Sum256([]byte(body))
	return strings.NewReplacer("{p}", p, "{settings}", settings, "{text}", text,
		"{hash}", hex.EncodeToString(hash[:])).Replace(
		`{p}.prokind = 'f' AND {p}.provolatile = 'v' AND {p}.proparallel = 'u' AND NOT ({p}.prosecdef OR {p}.proisstrict OR {p}.proleakproof OR {p}.proretset)
	AND {p}.prolang = (SELECT l.oid FROM pg_catalog.pg_language AS l WHERE l.lanname = 'plpgsql')
	AND {p}.proconfig {settings}
	AND pg_catalog.pg_has_role({p}.proowner, c.relowner, 'USAGE')
	AND pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to({text}, pg_catalog.getdatabaseencoding())), 'hex') = '{hash}'`)
}

// FindLedgerFunction returns the schema of the function if a guard can call it: it belongs to the
// ledger that the search path leads to; it and the triggers are what [CreateLedgerFunction] creates; and the
// role has the privileges.
var FindLedgerFunction = Qualified(`SELECT n.nspname::pg_catalog.text
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_proc AS p ON ` + LedgerFunctionIsNamed + `
WHERE c.oid = pg_catalog.to_regclass('` + sqltext.LedgerTable + `') AND c.relkind = 'r' AND ` +
	LedgerFunctionAsCreated + `
	AND (SELECT pg_catalog.count(*) FROM pg_catalog.pg_trigger AS g WHERE g.tgrelid = c.oid AND ` +
	LedgerTriggerAsCreated + `) = 3
	AND pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.has_function_privilege(p.oid, 'EXECUTE')`)

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
var recordIssuers = sqltext.Statements(recording.Files, "postgres/00001_ledger_issuers.up.sql")[0]
