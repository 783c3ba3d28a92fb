package postgres

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/schema/postgres"
)

// These statements create or update procedures in the schema of the ledger that the search path leads to. The
// procedures issue tokens or leases for programs without the Go packages, and set a search_path with pg_catalog first,
// so that all operators are PostgreSQL's. docs/adr/0049 explains why they are no functions.
var (
	CreateTokenProcedures = sqltext.Statements(postgres.Files, "00005_token_procedures.up.sql")[0]
	CreateLeaseProcedures = sqltext.Statements(postgres.Files, "00006_lease_procedures.up.sql")[0]
)

// FindProcedures returns a query that has a row if all named procedures are as created.
func FindProcedures(names ...string) string {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = Text.Text(name)
	}
	return Qualified(`SELECT 1 FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.oid = pg_catalog.to_regclass('` + sqltext.LedgerTable + `')
	AND (SELECT pg_catalog.count(*) FROM pg_catalog.pg_proc AS p WHERE p.pronamespace = n.oid
	AND p.proname IN (` + strings.Join(texts, ", ") + ") AND " + ProcedureAsCreated() + ") = " +
		strconv.Itoa(len(names)))
}

// ProcedureHashes are the hashes of the shipped procedures' parameters and bodies. Verify recognises a procedure by
// its hash.
var ProcedureHashes = map[string]string{
	"sqlfence_adopt":         "e9018b4d017a2738306bf5e191f60da0a2e4f4f4c9c1b515c6bca557cded0a34",
	"sqlfence_issue":         "67fb26b742612a1d202618541ee089f029b4c2b0ae6f9d265a98a8c6112e4888",
	"sqlfence_lease_acquire": "6de5e925639f039b86f0871a9ac4fc8578942730617e02a9c34a4bd5c58f64f0",
	"sqlfence_lease_extend":  "de4330ceef756854b0726058288ba2dd5f7633b6c7269a82aaa502ad8b6c6c43",
	"sqlfence_lease_release": "18973897cf68c9b966c4e1eed393306175590f718be7d4e7c5251cc5c52bca1b",
}

// ProcedureAsCreated is a condition: the procedure p, in the schema n of the ledger c, has the hash of its name in
// [ProcedureHashes]. A body that names sqlfence's tables with the ledger's schema counts as the shipped body, which
// names them without a schema.
func ProcedureAsCreated() string {
	var hashes []string
	for _, name := range slices.Sorted(maps.Keys(ProcedureHashes)) {
		hashes = append(hashes, "'"+name+" "+ProcedureHashes[name]+"'")
	}
	text := "pg_catalog.replace(p.prosrc, '%', '%%')"
	text = "pg_catalog.replace(" + text + ", pg_catalog.quote_literal(pg_catalog.replace(" +
		"pg_catalog.concat('pg_catalog, ', pg_catalog.quote_ident(n.nspname), ', pg_temp'), '%', '%%')), '%2$L')"
	const inQuotes = `pg_catalog.replace(pg_catalog.replace(n.nspname, '"', '""'), '%', '%%')`
	text = "pg_catalog.replace(" + text + `, pg_catalog.concat('"', ` + inQuotes + `, '".fencing_'), 'fencing_')`
	return `p.prokind = 'p' AND NOT p.prosecdef AND p.proconfig IS NULL
	AND p.prolang = (SELECT l.oid FROM pg_catalog.pg_language AS l WHERE l.lanname = 'plpgsql')
	AND pg_catalog.pg_has_role(p.proowner, c.relowner, 'USAGE')
	AND pg_catalog.concat(p.proname, ' ', pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to(pg_catalog.concat(
		pg_catalog.replace(pg_catalog.pg_get_function_arguments(p.oid), 'pg_catalog.', ''), pg_catalog.chr(10),
		` + text + `),
		pg_catalog.getdatabaseencoding())), 'hex'))
	IN (` + strings.Join(hashes, ", ") + ")"
}
