package postgres

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// A Procedure takes tokens or leases for a program that hasn't the Go packages. It sends what a package sends.
// docs/adr/0049 has why it is no function.
type Procedure struct {
	Name   string
	Params string // as pg_get_function_arguments writes them
	Body   string // a text for format, of the schema's name and the search path
}

// Enter is what a procedure does first. The first COMMIT fails in a transaction, before anything was done: what is
// taken there could be rolled back behind the use of it, and then go to a second one. The level is set, as a statement
// of a package relies on a snapshot behind its locks, and the path, so that names are the ledger's schema's.
const Enter = `
	COMMIT;
	SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
	PERFORM pg_catalog.set_config('search_path', %2$L, true);`

// NameIsFit has a procedure bring a name of tokens into its one form, as package nfc does, and refuse one that no
// token can have. PostgreSQL's texts are valid, and have no NUL.
func NameIsFit(param string) string {
	return strings.ReplaceAll(`
	IF octet_length({name}) <> char_length({name}) THEN
		{name} := pg_catalog."normalize"({name}, 'NFC');
	END IF;
	IF COALESCE({name} IN ('', '`+sqltext.FloorName+`'), true) OR octet_length(convert_to({name}, 'UTF8')) > 512 THEN
		RAISE EXCEPTION 'sqlfence: a token''s name has 1 to 512 bytes, and isn''t that of the ledger''s floor'
			USING ERRCODE = 'invalid_parameter_value';
	END IF;`, "{name}", param)
}

// Sends has a procedure send a statement of a package's own, word for word, with its arguments, into its variables.
func Sends(text, into, using string) string {
	return "EXECUTE $statement$" + strings.ReplaceAll(text, "%", "%%") + "$statement$\n\t\tINTO " + into +
		"\n\t\tUSING " + using + ";"
}

// CreateProcedures creates procedures in the schema of the ledger that the search path leads to, or brings them up to
// date.
func CreateProcedures(all ...Procedure) string {
	var b strings.Builder
	b.WriteString(`DO $install$
DECLARE
	home text;
	path text;
BEGIN
	PERFORM pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('sqlfence-install', 0));
	SELECT pg_catalog.quote_ident(n.nspname) INTO home
	FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
	WHERE c.oid = pg_catalog.to_regclass('fencing_tokens') AND c.relpersistence <> 't';
	IF home IS NULL THEN
		RAISE EXCEPTION 'sqlfence: there is no table fencing_tokens' USING ERRCODE = 'undefined_table';
	END IF;
	path := ` + procedurePath("home") + `;
`)
	for _, p := range all {
		fmt.Fprintf(&b, `
	EXECUTE pg_catalog.format($create$
CREATE OR REPLACE PROCEDURE %%1$s.%s(%s)
LANGUAGE plpgsql SECURITY INVOKER AS $procedure$%s$procedure$$create$, home, path);
`, p.Name, p.Params, p.Body)
	}
	b.WriteString("END\n$install$")
	return b.String()
}

// FindProcedures is a query that has a row where all are as they would be created.
func FindProcedures(all ...Procedure) string {
	names := make([]string, len(all))
	for i, p := range all {
		names[i] = Text.Text(p.Name)
	}
	return `SELECT 1 FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.oid = pg_catalog.to_regclass('fencing_tokens') AND (SELECT pg_catalog.count(*) FROM pg_catalog.pg_proc AS p
	WHERE p.pronamespace = n.oid AND p.proname IN (` + strings.Join(names, ", ") + ") AND " + ProcedureAsCreated() +
		") = " + strconv.Itoa(len(all))
}

// procedurePath is the search path of a procedure, of a schema's name in quotes.
func procedurePath(home string) string {
	return "pg_catalog.concat('pg_catalog, ', " + home + ", ', pg_temp')"
}

// Hash is how Verify knows a procedure again: by its parameters and its body.
func (p Procedure) Hash() string {
	sum := sha256.Sum256([]byte(p.Params + "\n" + p.Body))
	return hex.EncodeToString(sum[:])
}

// ProcedureHashes are those of the procedures of packages tokens and lease. Their tests compare them.
var ProcedureHashes = map[string]string{
	"sqlfence_adopt":         "e9018b4d017a2738306bf5e191f60da0a2e4f4f4c9c1b515c6bca557cded0a34",
	"sqlfence_issue":         "67fb26b742612a1d202618541ee089f029b4c2b0ae6f9d265a98a8c6112e4888",
	"sqlfence_lease_acquire": "6de5e925639f039b86f0871a9ac4fc8578942730617e02a9c34a4bd5c58f64f0",
	"sqlfence_lease_extend":  "de4330ceef756854b0726058288ba2dd5f7633b6c7269a82aaa502ad8b6c6c43",
	"sqlfence_lease_release": "18973897cf68c9b966c4e1eed393306175590f718be7d4e7c5251cc5c52bca1b",
}

// ProcedureAsCreated is a condition: the function p, in the schema n of the ledger c, is the procedure of its name.
// Tables that are named with the ledger's schema are those that the path leads to, too.
func ProcedureAsCreated() string {
	var hashes []string
	for _, name := range slices.Sorted(maps.Keys(ProcedureHashes)) {
		hashes = append(hashes, "('"+name+"', '"+ProcedureHashes[name]+"')")
	}
	text := "pg_catalog.replace(p.prosrc, '%', '%%')"
	text = "pg_catalog.replace(" + text + ", pg_catalog.quote_literal(pg_catalog.replace(" +
		procedurePath("pg_catalog.quote_ident(n.nspname)") + ", '%', '%%')), '%2$L')"
	const inQuotes = `pg_catalog.replace(pg_catalog.replace(n.nspname, '"', '""'), '%', '%%')`
	text = "pg_catalog.replace(" + text + `, pg_catalog.concat('"', ` + inQuotes + `, '".fencing_'), 'fencing_')`
	return `p.prokind = 'p' AND NOT p.prosecdef AND p.proconfig IS NULL
	AND p.prolang = (SELECT l.oid FROM pg_catalog.pg_language AS l WHERE l.lanname = 'plpgsql')
	AND pg_catalog.pg_has_role(p.proowner, c.relowner, 'USAGE')
	AND (p.proname, pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to(pg_catalog.concat(
		pg_catalog.pg_get_function_arguments(p.oid), pg_catalog.chr(10), ` + text + `),
		pg_catalog.getdatabaseencoding())), 'hex'))
	IN (` + strings.Join(hashes, ", ") + ")"
}
