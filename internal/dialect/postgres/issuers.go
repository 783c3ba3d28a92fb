package postgres

import "github.com/sqlfence/sqlfence/internal/sqltext"

// issuers: a row that is inserted has them by the columns' defaults, which cost less than a trigger, as Issue inserts
// also where the name is there. The trigger doesn't fire in a session that calls itself a replica, which copies what
// another server has recorded. It names the columns, so that these can't be dropped, or get another type, without it.
var issuers = sqltext.Issuers{
	Columns: []sqltext.IssuerColumn{{Name: sqltext.IssuedBy, Type: "text"},
		{Name: sqltext.IssuedAt, Type: "timestamp with time zone"}},
	Whole: recordIssuers,
	Read:  "issued_by, " + Text.Micros("issued_at"),
}

// issuedTrigger is the name of the trigger, and of its function.
const issuedTrigger = "sqlfence_issued_v1"

// issuer is who, in no need of a search path. No quotes are in it but those of constants.
const issuer = `pg_catalog.rtrim(pg_catalog.concat(session_user, '@',
		COALESCE(pg_catalog.host(pg_catalog.inet_client_addr()), 'local'), ', pid ',
		pg_catalog.pg_backend_pid(), ', ', pg_catalog.current_setting('application_name')), ', ')`

// issuerBody is what the trigger's function does.
const issuerBody = `
BEGIN
	NEW.issued_at := pg_catalog.clock_timestamp();
	NEW.issued_by := ` + issuer + `;
	RETURN NEW;
END
`

// IssuersAsCreated is a condition: the trigger g, of the ledger c in the schema n, is what [recordIssuers] creates.
var IssuersAsCreated = "g.tgname = '" + issuedTrigger + "' AND g.tgtype = 19 AND g.tgenabled IN ('O', 'A') AND " +
	"EXISTS (SELECT FROM pg_catalog.pg_proc AS t WHERE t.oid = g.tgfoid AND t.pronamespace = n.oid AND t.proname = '" +
	issuedTrigger + "' AND " + asCreated("t", issuerBody, "IS NULL") + ")"

// recordIssuers adds the columns, the function and the trigger to the table fencing_tokens that the search path
// leads to, or brings them up to date. Where all is there it locks nothing, and needs no privilege.
const recordIssuers = `DO $record$
DECLARE
	ledger oid := pg_catalog.to_regclass('fencing_tokens');
	home text;
	other text;
	patience text := pg_catalog.current_setting('lock_timeout');
	body text := $function$` + issuerBody + `$function$;
BEGIN
	-- Writers wait behind a lock of the table.
	PERFORM pg_catalog.set_config('lock_timeout', '1s', true) WHERE patience = '0';
	PERFORM pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('sqlfence-install', 0));
	SELECT n.nspname INTO home
	FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = ledger;
	IF home IS NULL THEN
		PERFORM FROM fencing_tokens; -- raises that there is none
	END IF;
	SELECT pg_catalog.concat(a.attname, ' of type ', pg_catalog.format_type(a.atttypid, a.atttypmod)) INTO other
	FROM pg_catalog.pg_attribute AS a
	WHERE a.attrelid = ledger AND NOT a.attisdropped
		AND (a.attname = 'issued_by' AND a.atttypid <> 'text'::pg_catalog.regtype
		OR a.attname = 'issued_at' AND a.atttypid <> 'timestamptz'::pg_catalog.regtype);
	IF other IS NOT NULL THEN
		RAISE EXCEPTION 'sqlfence: fencing_tokens has a column % of its own', other USING ERRCODE = 'datatype_mismatch';
	END IF;
	IF (SELECT pg_catalog.count(*) FROM pg_catalog.pg_attribute AS a
		WHERE a.attrelid = ledger AND NOT a.attisdropped AND a.atthasdef
		AND a.attname IN ('issued_by', 'issued_at')) < 2 THEN
		-- With a default of its own a new column would be filled in.
		EXECUTE pg_catalog.format('ALTER TABLE %1$I.fencing_tokens ADD COLUMN IF NOT EXISTS issued_by text, '
			'ADD COLUMN IF NOT EXISTS issued_at timestamptz', home);
		EXECUTE pg_catalog.format($default$ALTER TABLE %1$I.fencing_tokens
		ALTER COLUMN issued_at SET DEFAULT pg_catalog.clock_timestamp(),
		ALTER COLUMN issued_by SET DEFAULT ` + issuer + `$default$, home);
	END IF;

	IF NOT EXISTS (SELECT FROM pg_catalog.pg_trigger AS g JOIN pg_catalog.pg_proc AS p ON p.oid = g.tgfoid
		WHERE g.tgrelid = ledger AND g.tgname = '` + issuedTrigger + `' AND g.tgtype = 19 AND g.tgenabled IN ('O', 'A')
		AND p.oid = pg_catalog.to_regprocedure(pg_catalog.format('%I.` + issuedTrigger + `()', home))
		AND p.prosrc = body AND p.proconfig IS NULL) THEN
		EXECUTE pg_catalog.format('CREATE OR REPLACE FUNCTION %1$I.` + issuedTrigger + `()
			RETURNS trigger LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY INVOKER AS %2$L', home, body);
		EXECUTE pg_catalog.format('DROP TRIGGER IF EXISTS ` + issuedTrigger + ` ON %1$I.fencing_tokens', home);
		EXECUTE pg_catalog.format('CREATE TRIGGER ` + issuedTrigger + `
			BEFORE UPDATE OF token, issued_by, issued_at ON %1$I.fencing_tokens FOR ROW
			WHEN (NEW.token IS DISTINCT FROM OLD.token) EXECUTE FUNCTION %1$I.` + issuedTrigger + `()', home);
	END IF;
	PERFORM pg_catalog.set_config('lock_timeout', patience, true);
END
$record$`
