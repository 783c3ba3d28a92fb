package postgres

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/sqlfence/sqlfence/internal/sqltext"
	recording "github.com/sqlfence/sqlfence/schema/issuers"
	"github.com/sqlfence/sqlfence/schema/postgres"
)

// A PostgreSQL database may have, in addition to the ledger's table, a function that queries the ledger at less cost
// than a statement, and triggers. The triggers make each client that increases a token wait for the name's open
// guarded writes, and refuse to decrease or delete tokens. docs/adr/0015 and docs/adr/0030 have the reasons.

// CreateLedgerFunction creates or updates the function and the triggers for the table fencing_tokens that the search
// path leads to. It fails, and changes nothing, unless the table is an ordinary table with a unique name that is
// compared byte by byte, and the role has the privileges of the table's owner. The functions in the file are templates
// for PostgreSQL's format, which fills in the ledger's schema and the ledger's qualified name.
var CreateLedgerFunction = sqltext.Statements(postgres.Files, "00004_ledger_function.up.sql")[0]

// LedgerFunctionIsNamed is a condition: guards call the function p, in the schema n.
const LedgerFunctionIsNamed = "p.pronamespace = n.oid AND p.proname = '" + sqltext.LedgerFunction +
	"' AND p.proargtypes " +
	"= '25 20 23 25 2205'::pg_catalog.oidvector"

// LedgerTurnsIsNamed is a condition: the function p, in the schema n, calls the function q, which reports whether the
// ledger has its trigger. q is declared immutable, so that a session calls it once for each plan.
const LedgerTurnsIsNamed = "q.pronamespace = n.oid AND q.proname = '" + sqltext.LedgerTurns + "' AND q.pronargs = 0"

// LedgerFunctionAsCreated and LedgerTriggerAsCreated are conditions: the functions p and q, of
// [LedgerFunctionIsNamed] and [LedgerTurnsIsNamed], and the trigger g, of the ledger c in the schema n, are what
// [CreateLedgerFunction] creates. Each function belongs to a role that already has the privileges of the ledger's
// owner.
var (
	LedgerFunctionAsCreated = "p.prorettype = 16 AND p.proargnames = '{wanted,given,number,nonce,asked}' AND " +
		"p.proargmodes IS NULL AND " + asCreated("p", "v", ledgerBody(sqltext.LedgerFunction), "IS NULL") + " AND " +
		"q.prorettype = 16 AND " + asCreated("q", "i", ledgerBody(sqltext.LedgerTurns), "IS NULL")

	LedgerTriggerAsCreated = "pg_catalog.concat(g.tgname, ' ', g.tgtype) IN ('" + sqltext.LedgerTrigger + " 25', '" +
		sqltext.LedgerTruncateTrigger + " 34', '" + sqltext.LedgerBoundTrigger + " 21') " +
		"AND g.tgenabled = 'A' AND g.tgqual IS NULL AND g.tgattr = ''" +
		" AND EXISTS (SELECT FROM pg_catalog.pg_proc AS t WHERE t.oid = g.tgfoid AND t.pronamespace = n.oid AND " +
		"CASE WHEN g.tgname <> '" + sqltext.LedgerBoundTrigger + "' THEN " +
		"t.proname = '" + sqltext.LedgerTrigger + "' AND " +
		asCreated("t", "v", ledgerBody(sqltext.LedgerTrigger), pathSet) +
		" ELSE t.proname = '" + sqltext.LedgerBoundTrigger + "' AND " +
		asCreated("t", "v", ledgerBody(sqltext.LedgerBoundTrigger), pathSet) + " END)"
)

// ledgerBody returns the body of a function of CreateLedgerFunction.
func ledgerBody(name string) string { return bodyOf(CreateLedgerFunction, "FUNCTION %1$I."+name+"(") }

// bodyOf returns the body of the function in statement that follows the text front.
func bodyOf(statement, front string) string {
	_, behind, _ := strings.Cut(statement, front)
	_, body, _ := strings.Cut(behind, "$function$")
	body, _, found := strings.Cut(body, "$function$")
	if !found {
		panic("sqlfence: no body behind " + front) // it is a part of the program
	}
	return body
}

// pathSet is a condition for the settings of a function that sets its search path.
const pathSet = `= '{"search_path=pg_catalog, pg_temp"}'`

// asCreated compares a function's body by its hash, which is shorter: the server logs the canary with this text, as it
// throws an error. The stored body is converted back to a template for format, percent signs first, so that no other
// body leads to the same template. Bytes are compared in the database's encoding: no conversion fails.
func asCreated(p, volatility, body, settings string) string {
	const ledger = "pg_catalog.concat(pg_catalog.replace(pg_catalog.quote_ident(n.nspname), '%', '%%'), '." +
		sqltext.LedgerTable + "')"
	text := "pg_catalog.replace(" + p + ".prosrc, '%', '%%')"
	text = "pg_catalog.replace(" + text + ", pg_catalog.quote_literal(" + ledger + "), '%2$L')"
	text = "pg_catalog.replace(" + text + ", " + ledger + ", '%1$I." + sqltext.LedgerTable + "')"
	text = "pg_catalog.replace(" + text + ", pg_catalog.concat(pg_catalog.replace(pg_catalog.quote_ident(n.nspname), " +
		"'%', '%%'), '." + sqltext.LedgerTurns + "('), '%1$I." + sqltext.LedgerTurns + "(')"
	hash := sha256.Sum256([]byte(body))
	return strings.NewReplacer("{p}", p, "{volatility}", volatility, "{settings}", settings, "{text}", text,
		"{hash}", hex.EncodeToString(hash[:])).Replace(
		`{p}.prokind = 'f' AND {p}.provolatile = '{volatility}' AND {p}.proparallel = 'u' AND NOT ({p}.prosecdef OR {p}.proisstrict OR {p}.proleakproof OR {p}.proretset)
	AND {p}.prolang = (SELECT l.oid FROM pg_catalog.pg_language AS l WHERE l.lanname = 'plpgsql')
	AND {p}.proconfig {settings}
	AND pg_catalog.pg_has_role({p}.proowner, c.relowner, 'USAGE')
	AND pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to({text}, pg_catalog.getdatabaseencoding())), 'hex') = '{hash}'`)
}

// FindLedgerFunction is a query for the schema of the function if a guard can call it: the functions belong to the
// ledger that the search path leads to; they and the triggers are as [CreateLedgerFunction] creates them;
// the session's role may use the schema and execute the functions; and no row-level security of the ledger applies to
// the role. If no policy lets the role update the ledger, PostgreSQL 17 doesn't evaluate the condition of the guard's
// UPDATE.
var FindLedgerFunction = Qualified(`SELECT n.nspname::pg_catalog.text
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_proc AS p ON ` + LedgerFunctionIsNamed + `
JOIN pg_catalog.pg_proc AS q ON ` + LedgerTurnsIsNamed + `
WHERE c.oid = pg_catalog.to_regclass('` + sqltext.LedgerTable + `') AND c.relkind = 'r' AND ` +
	LedgerFunctionAsCreated + `
	AND (SELECT pg_catalog.count(*) FROM pg_catalog.pg_trigger AS g WHERE g.tgrelid = c.oid AND ` +
	LedgerTriggerAsCreated + `) = 3
	AND pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.has_function_privilege(p.oid, 'EXECUTE')
	AND pg_catalog.has_function_privilege(q.oid, 'EXECUTE') AND NOT pg_catalog.row_security_active(c.oid)`)

// issuers records who issued a token. An inserted row gets the values from column defaults, which cost less than a
// trigger, because Issue inserts even if the name exists. The trigger doesn't fire under session_replication_role =
// replica, where rows keep the values of the origin server. The trigger names the columns, so PostgreSQL refuses to
// drop or change the columns.
var issuers = sqltext.Issuers{
	Columns: []sqltext.IssuerColumn{{Name: sqltext.IssuedBy, Type: "text"},
		{Name: sqltext.IssuedAt, Type: "timestamp with time zone"}},
	Whole: recordIssuers,
	Read:  "issued_by, " + Text.Micros("issued_at"),
}

// IssuedTrigger is the name of the trigger of issuers, and of its function.
const IssuedTrigger = "sqlfence_issued_v1"

// IssuersAsCreated is a condition: the trigger g, of the ledger c in the schema n, is what [recordIssuers] creates.
var IssuersAsCreated = "g.tgname = '" + IssuedTrigger + "' AND g.tgtype = 19 AND g.tgenabled IN ('O', 'A') AND " +
	"EXISTS (SELECT FROM pg_catalog.pg_proc AS t WHERE t.oid = g.tgfoid AND t.pronamespace = n.oid AND t.proname = '" +
	IssuedTrigger + "' AND " + asCreated("t", "v", bodyOf(recordIssuers, "body text := "), "IS NULL") + ")"

// recordIssuers adds the columns, the function and the trigger to the table fencing_tokens that the search path leads
// to, or brings them up to date. If all exist it locks nothing, and needs no privilege.
var recordIssuers = sqltext.Statements(recording.Files, "postgres/00001_ledger_issuers.up.sql")[0]
